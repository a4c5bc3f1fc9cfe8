/* Read-modify-write of a counter under a lease lock whose lease can end at any moment.
 *
 * I1  no accepted write is lost: the counter is the number of accepted writes
 *
 * Right: *enter* raises the mark before the first read (in one step, or with -DTWO_STEPS the read
 * after it), *check* demands at the write that the mark is still exactly ours.
 * Wrong with -DWRITE_ONLY (fences are compared at the write alone), with -DREAD_FIRST (read, then
 * enter) and with -DCOUNTER_RESET (the lock store forgets its last fence once).
 * -DREACHABLE denies that all clients can succeed, which must be found wrong: the model does work.
 */
#define CLIENTS 4

byte owner = 0;       /* 0: free */
byte lastFence = 0;
byte mark = 0;        /* beside the data */
byte counter = 0;     /* the data */
byte accepted = 0;

active proctype Clock() {
#ifdef COUNTER_RESET
  bool forgotten = false;
#endif
end:
  do
  :: atomic { owner != 0 -> owner = 0 }                        /* the lease ends */
#ifdef COUNTER_RESET
  :: atomic { !forgotten -> forgotten = true; lastFence = 0; owner = 0 }
#endif
  od
}

proctype Client(byte me) {
  byte fence, seen;
  atomic { owner == 0 -> owner = me; lastFence++; fence = lastFence }

#ifdef WRITE_ONLY
  seen = counter;
  atomic {
    if
    :: mark <= fence -> mark = fence; counter = seen + 1; accepted++
    :: else
    fi;
    assert(counter == accepted)                                /* I1 */
  }
#else
#ifdef READ_FIRST
  seen = counter;
#endif
  atomic {
    if
    :: mark <= fence -> mark = fence
#if !defined(READ_FIRST) && !defined(TWO_STEPS)
      ; seen = counter
#endif
    :: else -> goto leave                                      /* FENCE_STALE */
    fi
  }
#ifdef TWO_STEPS
  seen = counter;
#endif
  /* Anything may happen here: a pause longer than the lease, another holder, its writes. */
  atomic {
    if
    :: mark == fence -> counter = seen + 1; accepted++
    :: else                                                    /* FENCE_STALE */
    fi;
    assert(counter == accepted);                               /* I1 */
#ifdef REACHABLE
    assert(accepted < CLIENTS)
#endif
  }
leave:
#endif
  atomic {
    if
    :: owner == me -> owner = 0
    :: else
    fi
  }
}

init {
  atomic { run Client(1); run Client(2); run Client(3); run Client(4) }
}

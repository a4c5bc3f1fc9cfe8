/* A lease lock whose lease can end at any moment, and holders that write late.
 *
 * I1  accepted writes carry fences that never fall
 * I2  in the store's own time there is one live lease; only its owner ends it early
 *
 * Right as it is. Wrong with -DNO_FENCE (the data accepts every write) and with -DBLIND_RELEASE
 * (release frees the lock whoever holds it).
 */
#define CLIENTS 3
#define ROUNDS 2

byte owner = 0;       /* 0: free */
byte lastFence = 0;   /* never goes back: max(previous + 1, clock) */
bool live[CLIENTS + 1];
byte mark = 0;        /* beside the data */
byte newest = 0;      /* the highest fence whose write was accepted */
byte writes = 0;      /* accepted writes */

active proctype Clock() {
end:
  do
  :: atomic { owner != 0 -> live[owner] = false; owner = 0 }   /* the lease ends */
  od
}

proctype Client(byte me) {
  byte fence, rounds = 0;
  do
  :: rounds < ROUNDS ->
    atomic {
      owner == 0 ->
      assert(!live[1] && !live[2] && !live[3]);                /* I2 */
      owner = me; live[me] = true;
      lastFence++; fence = lastFence
    }
    /* Anything may happen here: a pause longer than the lease, another holder, its writes. */
    atomic {
#ifdef NO_FENCE
      if
      :: true ->
#else
      if
      :: mark <= fence -> mark = fence;
#endif
        assert(fence >= newest);                               /* I1 */
        newest = fence; writes++;
#ifdef REACHABLE
        assert(writes < CLIENTS * ROUNDS)
#endif
#ifndef NO_FENCE
      :: else                                                  /* refused: a newer holder wrote */
#endif
      fi
    }
    atomic {
      if
#ifdef BLIND_RELEASE
      :: true -> owner = 0
#else
      :: owner == me -> live[me] = false; owner = 0
      :: else                                                  /* expired or taken */
#endif
      fi
    }
    rounds++
  :: rounds == ROUNDS -> break
  od
}

init {
  atomic { run Client(1); run Client(2); run Client(3) }
}

/** Buckets of one process: for tests, and for limits that are per process. */
import { LruMap } from '../runtime/lru-map.ts';
import { type Runtime, systemRuntime } from '../runtime/runtime.ts';
import {
  refilled,
  type TakePlan,
  type TokenBuckets,
  takeAnswer,
  takePlan,
} from './token-bucket.ts';

interface Bucket {
  amountNano: number;
  atMicros: number;
  plan: TakePlan;
}

/** Keeps buckets in this process. A bucket that is full again is forgotten. */
export function memoryTokenBuckets(
  options: { readonly runtime?: Runtime } = {},
): TokenBuckets & { readonly size: number } {
  const runtime = options.runtime ?? systemRuntime;
  const buckets = new LruMap<Bucket>();

  /** Looks at two buckets per call, so that no call is slow and idle buckets go in the long run. */
  function sweep(nowMicros: number): void {
    for (let looks = 2; looks > 0; looks--) {
      const [key, bucket] = buckets.oldest() ?? [];
      if (key === undefined || bucket === undefined) return;
      if (refilled(bucket.plan, bucket, nowMicros) < bucket.plan.capacityNano) buckets.use(key);
      else buckets.delete(key);
    }
  }

  return {
    get size() {
      return buckets.size;
    },
    async take(key, takeOptions) {
      const plan = takePlan(key, takeOptions);
      const nowMicros = Math.floor(runtime.monoMs() * 1_000);
      sweep(nowMicros);
      const bucket = buckets.get(key) ?? {
        amountNano: plan.capacityNano,
        atMicros: nowMicros,
        plan,
      };
      const amountNano = refilled(plan, bucket, nowMicros);
      const allowed = amountNano >= plan.takeNano;
      const left = allowed ? amountNano - plan.takeNano : amountNano;
      buckets.set(key, { amountNano: left, atMicros: nowMicros, plan });
      return takeAnswer(allowed, left, plan);
    },
  };
}

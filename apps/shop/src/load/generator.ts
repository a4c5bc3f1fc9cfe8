/** The load, a process of its own: an open loop at a given rate, answers told apart by code. */
import autocannon from 'autocannon';

/** One step, as the parent asks for it. */
export interface StepOrder {
  readonly base: string;
  readonly scheme: string;
  readonly rate: number;
  readonly seconds: number;
  /** Orders below this number have been used by earlier steps. */
  readonly firstOrder: number;
}

/** What came of it. */
export interface StepResult {
  readonly sent: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Answers by business code; `HTTP n`, `error` and `timeout` for everything else. */
  readonly codes: Readonly<Record<string, number>>;
}

const repeatShare = 0.2;
const recentOrders = 1_000;

async function drive({ base, scheme, rate, seconds, firstOrder }: StepOrder): Promise<StepResult> {
  const codes: Record<string, number> = {};
  const count = (code: string, by = 1): void => {
    codes[code] = (codes[code] ?? 0) + by;
  };
  let next = firstOrder;
  const orderNo = (): number => {
    const used = next - firstOrder;
    if (used > 10 && Math.random() < repeatShare) {
      return next - 1 - Math.floor(Math.random() * Math.min(used, recentOrders));
    }
    return next++;
  };
  const result = await autocannon({
    url: base,
    connections: 64,
    duration: seconds,
    overallRate: rate,
    timeout: 10,
    requests: [
      {
        method: 'POST',
        setupRequest: (request) => ({ ...request, path: `/callback/${scheme}/${orderNo()}` }),
      },
    ],
    setupClient(client) {
      client.on('body', (body) => {
        const code = /"code":"(\w+)"/.exec(body.toString())?.[1];
        count(code ?? 'unreadable');
      });
    },
  });
  if (result.errors > 0) count('error', result.errors - result.timeouts);
  if (result.timeouts > 0) count('timeout', result.timeouts);
  const { p50, p90, p99, max } = result.latency;
  return {
    sent: result.requests.sent,
    perSecond: result.requests.total / result.duration,
    p50Ms: p50,
    p90Ms: p90,
    p99Ms: p99,
    maxMs: max,
    codes,
  };
}

process.on('message', (order: StepOrder) => {
  void drive(order).then((result) => process.send?.(result));
});
process.on('disconnect', () => process.exit(0));

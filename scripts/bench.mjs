// `npm run bench -- …`: makes the checkout ready, then runs the benchmarks.
import { bootstrap } from './lib/bootstrap.mjs';

await bootstrap();
await import('../bench/main.mjs');

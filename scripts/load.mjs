// `npm run load -- …`: makes the checkout ready, then runs the comparison of schemes under load.
import { bootstrap } from './lib/bootstrap.mjs';

await bootstrap();
await import('../apps/shop/dist/load/main.js');

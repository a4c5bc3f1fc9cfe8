// `npm run lab -- …`: makes the checkout ready, then runs the lab with the same arguments.
import { bootstrap } from './lib/bootstrap.mjs';

await bootstrap();
await import('../apps/shop/dist/lab/main.js');

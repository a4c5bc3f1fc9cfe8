// `npm start`: makes the checkout ready, then runs the shop in this process.
import { bootstrap } from './lib/bootstrap.mjs';

await bootstrap();
await import('../apps/shop/dist/main.js');

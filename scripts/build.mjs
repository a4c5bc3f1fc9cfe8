// `npm run build`: installs the dependencies and compiles everything, as far as needed.
import { bootstrap } from './lib/bootstrap.mjs';

await bootstrap();

import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Root directory of the repository. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

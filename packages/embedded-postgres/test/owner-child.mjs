// Owns a data directory until it is killed. Prints one JSON line once the server is ready, or
// the error. Usage: node owner-child.mjs <dataDir>
import { startEmbeddedPostgres } from '../dist/index.js';

try {
  const { url, pid } = await startEmbeddedPostgres({ dataDir: process.argv[2], initNoSync: true });
  console.log(JSON.stringify({ url, pid }));
} catch (error) {
  console.log(JSON.stringify({ code: error.code, message: error.message }));
}

// Tries to own a data directory and holds it until its input closes. Prints "won" or "lost".
import { takeOwnership } from '../dist/owner-lock.js';

try {
  takeOwnership(process.argv[2]);
  console.log('won');
} catch (error) {
  console.log(error.code === 'DATA_DIR_IN_USE' ? 'lost' : String(error));
}
process.stdin.resume();

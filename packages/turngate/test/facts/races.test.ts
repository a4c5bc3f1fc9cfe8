import { createGate } from '../../src/index.ts';
import { describeWith } from '../support/servers.ts';
import { raceLaws } from './race-laws.ts';
import { targets } from './targets.ts';

for (const { name, needs, open } of targets) {
  describeWith(needs, `races on ${name}`, () => {
    raceLaws(open, (records) => createGate({ records, memoryCharsMax: 0 }));
  });
}

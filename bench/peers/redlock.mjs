// redlock 4 and 5, and sesamecare's continuation of 5. One server each: a quorum is another thing.
import { Redlock as Sesamecare } from '@sesamecare-oss/redlock';
import Redlock4 from 'redlock4';
import * as redlock5 from 'redlock5';
import { openClient } from './clients.mjs';
import { gateUntil, inSlices, POLL_JITTER_MS, POLL_MS, triesFor } from './settings.mjs';

const Redlock5 = redlock5.default?.default ?? redlock5.default;

function retrySettings(patientMs) {
  if (patientMs === undefined) return {};
  return { retryCount: triesFor(patientMs), retryDelay: POLL_MS, retryJitter: POLL_JITTER_MS };
}

export const version4 = {
  async open({ port, leaseMs, patientMs }) {
    const { client, close } = await openClient('ioredis5', port);
    const redlock = new Redlock4([client], retrySettings(patientMs));
    redlock.on('clientError', () => {});
    return {
      close,
      async acquire(key) {
        const lock = await redlock.lock(key, leaseMs);
        return () => lock.unlock();
      },
    };
  },
};

const fifth = (Redlock) => ({
  async open({ port, leaseMs, patientMs }) {
    const { client, close } = await openClient('ioredis5', port);
    const redlock = new Redlock([client], retrySettings(patientMs));
    redlock.on('error', () => {});
    return {
      close,
      async acquire(key) {
        const lock = await redlock.acquire([key], leaseMs);
        return () => lock.release();
      },
    };
  },
  async hold({ port, keys, leaseMs, everyMs }) {
    const { client, close } = await openClient('ioredis5', port);
    // It takes 1 % of the lease and 2 ms off for drift, and renews so long before what is left.
    const automaticExtensionThreshold = Math.round(leaseMs * 0.99) - 2 - everyMs;
    const redlock = new Redlock([client], { automaticExtensionThreshold, retryCount: 0 });
    redlock.on('error', () => {});
    const end = gateUntil();
    let lost = 0;
    const uses = [];
    await inSlices(keys, (key) => {
      const held = gateUntil();
      const use = redlock.using([key], leaseMs, (signal) => {
        signal.addEventListener('abort', () => lost++);
        held.open();
        return end.opened;
      });
      uses.push(use);
      return Promise.race([held.opened, use]);
    });
    return {
      async stop() {
        end.open();
        const ends = await Promise.allSettled(uses);
        await close();
        return Math.max(lost, ends.filter(({ status }) => status === 'rejected').length);
      },
    };
  },
});

export const version5 = fifth(Redlock5);
export const sesamecare = fifth(Sesamecare);

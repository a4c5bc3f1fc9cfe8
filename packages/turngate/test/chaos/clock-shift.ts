/** A Redis whose wall clock can be set. libfaketime keeps redis-server from starting, so: 20 lines of C. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { lookForProgram, startRedis, temporaryDir } from '@turngate/test-servers';

const source = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile long long *shift;
__attribute__((constructor)) static void init(void) {
  const char *path = getenv("TURNGATE_CLOCK_SHIFT");
  int fd = path ? open(path, O_RDONLY) : -1;
  void *at = fd < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
  shift = at == MAP_FAILED ? 0 : at;
}
int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  struct timespec ts;
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int answer = real(CLOCK_REALTIME, &ts);
  tv->tv_sec = ts.tv_sec + (shift ? *shift : 0);
  tv->tv_usec = ts.tv_nsec / 1000;
  return answer;
}
time_t time(time_t *out) {
  struct timeval tv;
  gettimeofday(&tv, 0);
  if (out) *out = tv.tv_sec;
  return tv.tv_sec;
}
`;

/** Is there a C compiler? */
export function canShiftClocks(): boolean {
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' });
    return process.platform === 'linux';
  } catch {
    return false;
  }
}

/** Starts it; `shiftSeconds` counts from the true time. */
export async function startShiftableRedis() {
  const dir = await temporaryDir('clock');
  const code = join(dir.path, 'clock.c');
  const library = join(dir.path, 'clock.so');
  const file = join(dir.path, 'shift');
  writeFileSync(code, source);
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', library, code, '-ldl']);
  writeFileSync(file, Buffer.alloc(8));
  // Servers get a clean environment, so the library comes by a program of the same name in front.
  const program = lookForProgram('redis-server') ?? '';
  const variables = `LD_PRELOAD='${library}' TURNGATE_CLOCK_SHIFT='${file}'`;
  const script = `#!/bin/sh\nexec env ${variables} '${program}' "$@"\n`;
  writeFileSync(join(dir.path, 'redis-server'), script, { mode: 0o755 });
  const { PATH = '' } = process.env;
  process.env['PATH'] = `${dir.path}:${PATH}`;
  const redis = await startRedis().finally(() => {
    process.env['PATH'] = PATH;
  });
  return {
    redis,
    shiftSeconds(seconds: number): void {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt(seconds));
      const fd = openSync(file, 'r+'); // In place: the server has it mapped.
      writeSync(fd, bytes, 0, 8, 0);
      closeSync(fd);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await redis.stop();
      await dir.remove();
    },
  };
}

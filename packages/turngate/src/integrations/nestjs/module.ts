/** The module as plain objects. */
import type { Gate } from '../../gate/gate.ts';
import {
  IdempotencyInterceptor,
  type NestIdempotencyOptions,
  type NestRequest,
} from './interceptor.ts';

/** Injection token of the gate: `@Inject(TURNGATE_GATE) gate: Gate<PoolClient>`. */
export const TURNGATE_GATE = 'TURNGATE_GATE';

const optionsToken = 'TURNGATE_IDEMPOTENCY_OPTIONS';
const appInterceptor = 'APP_INTERCEPTOR'; // The value of @nestjs/core's constant of that name.

/** A dynamic module, as Nest reads it. */
export interface NestModule {
  // biome-ignore lint/suspicious/noExplicitAny: Nest's own `Type<any>`.
  readonly module: any;
  readonly global: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: Nest's module and provider unions.
  readonly imports?: any[];
  // biome-ignore lint/suspicious/noExplicitAny: Nest's module and provider unions.
  readonly providers: any[];
  readonly exports: string[];
}

/** Options of {@link TurngateModule.forRootAsync}. */
export interface NestAsyncOptions<Tx, Req> {
  // biome-ignore lint/suspicious/noExplicitAny: Nest's module union.
  readonly imports?: any[];
  // biome-ignore lint/suspicious/noExplicitAny: Nest's token union.
  readonly inject?: any[];
  readonly useFactory: (
    // biome-ignore lint/suspicious/noExplicitAny: what was injected.
    ...injected: any[]
  ) => NestIdempotencyOptions<Tx, Req> | Promise<NestIdempotencyOptions<Tx, Req>>;
}

/**
 * Installs the interceptor for all handlers marked `@Idempotent()`. The gate stays yours: close it
 * in `onApplicationShutdown`.
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest wants a class as a module.
export class TurngateModule {
  /** With options known now. */
  static forRoot<Tx, Req extends NestRequest = NestRequest>(
    options: NestIdempotencyOptions<Tx, Req>,
  ): NestModule {
    return moduleOf({ provide: optionsToken, useValue: options }, []);
  }

  /** With options from other providers. */
  static forRootAsync<Tx, Req extends NestRequest = NestRequest>(
    options: NestAsyncOptions<Tx, Req>,
  ): NestModule {
    const { imports = [], inject = [], useFactory } = options;
    return moduleOf({ provide: optionsToken, inject, useFactory }, imports);
  }
}

function moduleOf(options: object, imports: object[]): NestModule {
  return {
    module: TurngateModule,
    global: true,
    imports,
    providers: [
      options,
      {
        provide: TURNGATE_GATE,
        inject: [optionsToken],
        useFactory: ({ gate }: { gate: Gate<unknown> }) => gate,
      },
      {
        provide: appInterceptor,
        inject: [optionsToken],
        useFactory: (given: NestIdempotencyOptions<unknown, NestRequest>) =>
          new IdempotencyInterceptor(given),
      },
    ],
    exports: [TURNGATE_GATE],
  };
}

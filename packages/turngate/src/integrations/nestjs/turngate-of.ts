/** The transaction for a handler's parameters. */
import type { HttpContext } from '../../http/layer.ts';

/**
 * What the layer gives the handler, from an execution context; for a parameter decorator of your
 * own: `createParamDecorator((_, context) => turngateOf<PoolClient>(context)?.tx)`.
 */
export function turngateOf<Tx>(context: {
  switchToHttp(): { getRequest<T>(): T };
}): HttpContext<Tx> | undefined {
  return context.switchToHttp().getRequest<{ turngate?: HttpContext<Tx> }>().turngate;
}

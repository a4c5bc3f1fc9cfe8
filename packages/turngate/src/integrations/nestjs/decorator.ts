/** `@Idempotent()`: which handlers are protected, and how. */
import type { HttpOptions } from '../../http/options.ts';

/** Works on a method and, for all its writing methods, on a controller class. */
export type IdempotentDecorator = (
  target: object,
  name?: string | symbol,
  // biome-ignore lint/suspicious/noExplicitAny: what TypeScript passes to a method decorator.
  descriptor?: TypedPropertyDescriptor<any>,
) => void;

const marked = new WeakMap<object, Partial<HttpOptions<never>>>();

/**
 * Protects a handler, or all handlers of a controller. Options given here go before the module's.
 * Place it above decorators that replace the method.
 */
export function Idempotent<Req = never>(
  options: Partial<HttpOptions<Req>> = {},
): IdempotentDecorator {
  return (target, _name, descriptor) => {
    const place: unknown = descriptor === undefined ? target : descriptor.value;
    marked.set(place as object, options as Partial<HttpOptions<never>>);
  };
}

/** The options of a handler, with its class's beneath; undefined when neither is marked. */
export function optionsOf(
  handler: object,
  controller: object,
): Partial<HttpOptions<never>> | undefined {
  const ofHandler = marked.get(handler);
  const ofClass = marked.get(controller);
  if (ofHandler === undefined && ofClass === undefined) return undefined;
  return { ...ofClass, ...ofHandler };
}

/** The layer over a node:http response: the common part of the adapters that have one. */
import type { HttpContext, HttpLayer } from './layer.ts';
import type { HandlerResponse, HttpRequest, HttpResponse } from './message.ts';
import { HeldResponse } from './node-response.ts';
import { type NodeResponse, sendNode } from './node-send.ts';

/** What a framework wants otherwise. */
export interface NodeWays {
  /** Sends what needs no handler: repeats and problems. */
  readonly sendWithoutHandler?: (response: HttpResponse) => void;
  /** Gets an error that came when the handler had already answered, such as a constraint checked at commit. */
  readonly onLateError?: (error: unknown) => void;
  /** Is this the framework's own word that there is nobody to answer? */
  readonly isUnanswered?: (response: HandlerResponse) => boolean;
}

/**
 * Runs one request through the layer. `start` lets the framework run the handler, whose answer is
 * held until the record is durable. Resolves `pass` when the layer has nothing to do with it.
 *
 * When it throws, the response is as it was before, for the framework to answer.
 */
export async function handleNode<Tx, Native>(
  layer: HttpLayer<Tx, Native>,
  request: HttpRequest<Native>,
  res: NodeResponse,
  start: (context: HttpContext<Tx> | undefined) => void,
  ways: NodeWays = {},
): Promise<'pass' | 'answered'> {
  const { sendWithoutHandler = (response) => sendNode(res, response), onLateError } = ways;
  let held: HeldResponse | undefined;
  try {
    const answer = await layer.handle(request, async (context) => {
      held = new HeldResponse(res, layer.policy.response);
      start(context);
      const response = await held.answered;
      return ways.isUnanswered?.(response) ? { ...response, unanswered: true } : response;
    });
    if (answer.kind === 'pass') return 'pass';
    if (answer.kind === 'handler') held?.release(answer.headers);
    else if (held === undefined) sendWithoutHandler(answer.response);
    else held.replace(answer.response);
    return 'answered';
  } catch (error) {
    held?.abandon();
    if (held === undefined || onLateError === undefined) throw error;
    onLateError(error);
    return 'answered';
  }
}

/** The layer over a node:http response: the common part of the adapters that have one. */
import type { HttpContext, HttpLayer } from './layer.ts';
import type { HttpRequest, HttpResponse } from './message.ts';
import { HeldResponse } from './node-response.ts';
import { type NodeResponse, sendNode } from './node-send.ts';

/**
 * Runs one request through the layer. `start` lets the framework run the handler, whose answer is
 * held until the record is durable. Resolves `pass` when the layer has nothing to do with it.
 * `sendWithoutHandler` sends what needs no handler: repeats and problems.
 *
 * When it throws, the response is as it was before, for the framework to answer; `onLateError` gets
 * an error that came when the handler had already answered, such as a constraint checked at commit.
 */
export async function handleNode<Tx, Native>(
  layer: HttpLayer<Tx, Native>,
  request: HttpRequest<Native>,
  res: NodeResponse,
  start: (context: HttpContext<Tx> | undefined) => void,
  sendWithoutHandler: (response: HttpResponse) => void = (response) => sendNode(res, response),
  onLateError?: (error: unknown) => void,
): Promise<'pass' | 'answered'> {
  let held: HeldResponse | undefined;
  try {
    const answer = await layer.handle(request, (context) => {
      held = new HeldResponse(res, layer.policy.response);
      start(context);
      return held.answered;
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

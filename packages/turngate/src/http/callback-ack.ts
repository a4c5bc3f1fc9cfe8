/**
 * What payment channels want to read when they call back, to the byte. Anything else is a failure to
 * them and starts up to a day of redeliveries; so a repeat must get exactly what the first got.
 */
import { isTurngateError } from '../core/errors.ts';
import { optionError, wordOption } from '../core/option.ts';
import { type HttpResponse, headerLines } from './message.ts';

/** Channels with a preset. */
export type AckChannel = 'wechat-v2' | 'wechat-v3' | 'alipay' | 'stripe' | 'adyen';

interface AckPreset {
  readonly success: HttpResponse;
  /** Makes the channel deliver again. */
  readonly failure: HttpResponse;
}

function answer(status: number, type: string | undefined, text: string | null): HttpResponse {
  const headers = type === undefined ? [] : headerLines({ 'Content-Type': type });
  return { status, headers, body: text === null ? null : Buffer.from(text, 'utf8') };
}

function wechatXml(code: string, message: string): string {
  return `<xml><return_code><![CDATA[${code}]]></return_code><return_msg><![CDATA[${message}]]></return_msg></xml>`;
}

const presets: Readonly<Record<AckChannel, AckPreset>> = {
  // v2 reads the XML, whatever the status.
  'wechat-v2': {
    success: answer(200, 'text/xml', wechatXml('SUCCESS', 'OK')),
    failure: answer(200, 'text/xml', wechatXml('FAIL', 'TRY AGAIN')),
  },
  // v3 reads the status: 200 or 204 only, a 201 is a failure.
  'wechat-v3': {
    success: answer(204, undefined, null),
    failure: answer(500, 'application/json', '{"code":"FAIL","message":"try again"}'),
  },
  // Seven bytes and nothing around them: no quotes, no line end, no markup.
  alipay: {
    success: answer(200, 'text/plain', 'success'),
    failure: answer(200, 'text/plain', 'fail'),
  },
  stripe: {
    success: answer(200, 'application/json', '{"received":true}'),
    failure: answer(503, 'application/json', '{"received":false}'),
  },
  adyen: {
    success: answer(200, 'text/plain', '[accepted]'),
    failure: answer(503, 'text/plain', '[failed]'),
  },
};

/** Options of {@link acknowledge}. */
export interface AcknowledgeOptions {
  /**
   * What a remembered refusal says. `failure` keeps the channel knocking until its schedule ends,
   * which is loud; `success` ends it: right when the refusal is noted where people look.
   * Default `failure`.
   */
  readonly onRefused?: 'success' | 'failure';
  /** Gets what the work threw, to log it; not the DUPLICATE_REQUEST of work that was done before. */
  readonly onError?: (error: unknown) => void;
}

/** The exact answers of a channel. */
export function callbackAck(channel: AckChannel): AckPreset {
  if (Object.hasOwn(presets, channel)) return presets[channel];
  throw optionError('channel', `one of ${Object.keys(presets).join(', ')}`, channel);
}

/**
 * Runs the work of a callback, usually one operation keyed by the notification's id, and gives the
 * channel's answer: success for the first and for every repeat, failure when the work threw or is
 * still running elsewhere. Check the signature before; it answers nobody unknown.
 *
 * Not promised: that one notification id is all the channel ever sends for one payment. Guard the
 * business state too.
 */
export async function acknowledge(
  channel: AckChannel,
  work: () => Promise<unknown>,
  options: AcknowledgeOptions = {},
): Promise<HttpResponse> {
  const preset = callbackAck(channel);
  const words = ['success', 'failure'] as const;
  const onRefused = wordOption('onRefused', options.onRefused, words, 'failure');
  try {
    await work();
    return preset.success;
  } catch (error) {
    // Done before, by an operation that refuses repeats: for the channel that is a success.
    if (isTurngateError(error, 'DUPLICATE_REQUEST')) return preset.success;
    options.onError?.(error);
    return isTurngateError(error, 'REFUSED') ? preset[onRefused] : preset.failure;
  }
}

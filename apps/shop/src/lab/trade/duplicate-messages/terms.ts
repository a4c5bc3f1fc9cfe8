/** What can be done with a message, and what must hold after it. */
import type { Contender, Law } from '../../scenario.ts';

/** A message as a broker delivers it, at least once. */
export interface Delivered {
  readonly messageId: string;
  readonly payload: string;
}

export interface MessageVerbs {
  readonly deliver: Delivered;
}

/** Where a consumer is killed: its effect is written and not committed. */
export const beforeCommit = 'before-commit';

export const messageLaws = {
  twice: {
    one: 'message applied twice',
    many: 'messages applied twice',
    meaning: 'points given again for a paid order that had its points',
  },
  lost: {
    one: 'message lost',
    many: 'messages lost',
    meaning: 'acknowledged in the end, and its points were never given',
  },
} as const satisfies Record<string, Law>;

export type MessageContender = Contender<MessageVerbs, keyof typeof messageLaws>;

/** What a participant hears in the storm of words, and what must hold after it. */
import type { SqlDatabase } from 'turngate/contract';
import type { DepotHold } from '../../../depot/depot.ts';
import type { Contender, Law, Trial } from '../../scenario.ts';

export interface Word extends DepotHold {
  readonly gid: string;
  readonly op: 'try' | 'confirm' | 'cancel';
}

export interface WordVerbs {
  readonly word: Word;
}

export const wordLaws = {
  twice: {
    one: 'reservation counted wrong',
    many: 'reservations counted wrong',
    meaning: 'a word that came again, or at the wrong time, moved units',
  },
  hanging: {
    one: 'reservation left hanging',
    many: 'reservations left hanging',
    meaning: 'a try that came after its cancel holds units that nobody will give back',
  },
} as const satisfies Record<string, Law>;

export type WordContender = Contender<WordVerbs, keyof typeof wordLaws>;

/** A participant can die with its effect written and not yet committed. */
export function mortal<Tx>(database: SqlDatabase<Tx>, trial: Trial): SqlDatabase<Tx> {
  return {
    ...database,
    transaction: (work, ends) =>
      database.transaction(async (sql, tx, first) => {
        const value = await work(sql, tx, first);
        await trial.at('written');
        return value;
      }, ends),
  };
}

/** Storms of transactions across services, in the order of the report. */
import type { AnyScenario } from '../scenario.ts';
import { checkoutDeaths } from './deaths/scenario.ts';
import { wordStorm } from './words/scenario.ts';

export const tccScenarios: Readonly<Record<string, AnyScenario>> = {
  'tcc-words': wordStorm,
  'tcc-deaths': checkoutDeaths,
};

/** Storms of sagas, in the order of the report. */
import type { AnyScenario } from '../scenario.ts';
import { returnDeaths } from './returns/scenario.ts';

export const sagaScenarios: Readonly<Record<string, AnyScenario>> = {
  'saga-returns': returnDeaths,
};

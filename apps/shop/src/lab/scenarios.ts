/** All scenarios, in the order of the report. */

import { sagaScenarios } from './saga/index.ts';
import type { AnyScenario } from './scenario.ts';
import { tccScenarios } from './tcc/index.ts';
import { tradeScenarios } from './trade/index.ts';

export const scenarios: Readonly<Record<string, AnyScenario>> = {
  ...tradeScenarios,
  ...tccScenarios,
  ...sagaScenarios,
};

export const scenarioIds: readonly string[] = Object.keys(scenarios);

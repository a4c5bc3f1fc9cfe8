/** Storms of the trade, in the order of the report. */
import type { AnyScenario } from '../scenario.ts';
import { activitySale } from './activity-sale/scenario.ts';
import { callbackStorm } from './callback-storm/scenario.ts';
import { cancelVersusCallback } from './cancel-versus-callback/scenario.ts';
import { closingNodes } from './closing-nodes/scenario.ts';
import { couponRace } from './coupon-race/scenario.ts';
import { duplicateMessages } from './duplicate-messages/scenario.ts';
import { jobNodes } from './job-nodes/scenario.ts';
import { refundRace } from './refund-race/scenario.ts';

export const tradeScenarios: Readonly<Record<string, AnyScenario>> = {
  'callback-storm': callbackStorm,
  'cancel-versus-callback': cancelVersusCallback,
  'activity-sale': activitySale,
  'coupon-race': couponRace,
  'refund-race': refundRace,
  'duplicate-messages': duplicateMessages,
  'closing-nodes': closingNodes,
  'job-nodes': jobNodes,
};

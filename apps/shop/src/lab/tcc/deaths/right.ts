/** RIGHT: the shop's own checkout; whoever is left goes on with what a dead node had begun. */
import { type DepotHold, depotParticipant } from '../../../depot/depot.ts';
import { checkoutOperation } from '../../../trade/checkout.ts';
import type { Trial } from '../../scenario.ts';
import type { CheckoutContender } from './terms.ts';

const leaseMs = 500;
const recoverEveryMs = 200;

export const right: CheckoutContender = {
  title: 'turngate',
  idea: 'The shop’s checkout: a TCC whose steps are recorded, participants behind a barrier.',
  breaks: [],
  why: 'after its lease another node reads the recorded steps and goes on where the dead one was',
  open({ store, onEnd }) {
    const trials = new Map<string, Trial>();
    const at = (point: string, { checkoutNo }: DepotHold): Promise<void> =>
      trials.get(checkoutNo)?.at(point) ?? Promise.resolve();
    const depot = depotParticipant(store.database);
    const checkout = checkoutOperation(
      store,
      {
        async try(hold, context) {
          const value = await depot.try(hold, context).catch(async (error: unknown) => {
            await at('refused', hold);
            throw error;
          });
          await at('reserved', hold);
          return value;
        },
        async confirm(hold, context) {
          await depot.confirm(hold, context);
          await at('half-confirmed', hold);
        },
        cancel: depot.cancel,
      },
      { leaseMs },
    );
    const recovery = store.gate.recover({ everyMs: recoverEveryMs });
    onEnd(() => recovery.stop());
    return {
      async checkout(request, trial) {
        trials.set(request.checkoutNo, trial);
        await checkout(request);
      },
    };
  },
};

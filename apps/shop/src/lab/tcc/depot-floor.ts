/** What a storm of checkouts finds: articles with units in the depot, customers with money. */
import { supplyOperation } from '../../depot/depot.ts';
import { accountOperations } from '../../trade/accounts.ts';
import type { Store } from '../../trade/store.ts';
import { ShopFloor } from '../trade/shop-floor.ts';

export class DepotFloor {
  readonly priceMinor: number;
  private readonly floor: ShopFloor;
  private readonly supply: ReturnType<typeof supplyOperation>;
  private readonly accounts: ReturnType<typeof accountOperations>;

  constructor(store: Store) {
    this.floor = new ShopFloor(store);
    this.priceMinor = this.floor.priceMinor;
    this.supply = supplyOperation(store.gate, store.database);
    this.accounts = accountOperations(store);
  }

  /** An article that only the depot has. */
  async openSku(skuId: string, units: number): Promise<string> {
    await this.floor.openSku(skuId, 0);
    await this.supply({ skuId, supplyNo: 'first', units });
    return skuId;
  }

  async openAccount(userId: string, amountMinor: number): Promise<void> {
    await this.accounts.deposit({ userId, txnNo: 'first', amountMinor });
  }
}

/** The channel of the lab: it gives money back once per number, and refuses some payments for good. */
import type { SqlDatabase } from 'turngate/contract';
import { ChannelClient } from '../../../channel/client.ts';

export const channelTables: readonly string[] = [
  `CREATE TABLE lab_channel_refund (refund_no text PRIMARY KEY, payment_no text NOT NULL,
     amount_minor bigint NOT NULL)`,
  'CREATE TABLE lab_channel_refused (payment_no text PRIMARY KEY)',
];

export class LabChannel extends ChannelClient {
  private readonly database: SqlDatabase;
  private readonly onAsked: () => Promise<void>;

  /** `onAsked`: the channel has decided, and nobody has heard of it yet. */
  constructor(database: SqlDatabase, onAsked: () => Promise<void>) {
    super({ secret: '', url: undefined });
    this.database = database;
    this.onAsked = onAsked;
  }

  override async refund({
    refundNo,
    paymentNo,
    amountMinor,
  }: Parameters<ChannelClient['refund']>[0]): Promise<boolean> {
    const { rows } = await this.database.query(
      'SELECT 1 AS known FROM lab_channel_refused WHERE payment_no = $1',
      [paymentNo],
    );
    const refused = rows.length > 0;
    if (!refused) {
      await this.database.query(
        `INSERT INTO lab_channel_refund (refund_no, payment_no, amount_minor) VALUES ($1, $2, $3)
         ON CONFLICT (refund_no) DO NOTHING`,
        [refundNo, paymentNo, amountMinor],
      );
    }
    await this.onAsked();
    return !refused;
  }
}

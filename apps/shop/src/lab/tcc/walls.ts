/** Constraints that would turn a mistake into an error; down for the right ones and the wrong ones alike. */
export const depotWalls: readonly string[] = [
  'ALTER TABLE shop_depot DROP CONSTRAINT IF EXISTS shop_depot_units_left_check',
  'ALTER TABLE shop_depot DROP CONSTRAINT IF EXISTS shop_depot_units_held_check',
  'ALTER TABLE shop_depot DROP CONSTRAINT IF EXISTS shop_depot_units_sold_check',
];

/** Opens the shop's database by its URL: PostgreSQL, or MySQL and MariaDB. */
import { openMysql } from './mysql.ts';
import { openPostgres } from './postgres.ts';
import type { ShopDatabase } from './shop-database.ts';

const mysqlUrl = /^(mysql|mariadb):\/\//;

/** True for URLs that `openDatabase` can open. */
export function isDatabaseUrl(url: string): boolean {
  return mysqlUrl.test(url) || /^postgres(ql)?:\/\//.test(url);
}

/** Opens it; nothing is sent before the first call. `onIdleError` hears of lost idle connections. */
export function openDatabase(url: string, onIdleError: (error: Error) => void): ShopDatabase {
  return mysqlUrl.test(url) ? openMysql(url) : openPostgres(url, onIdleError);
}

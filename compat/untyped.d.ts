// Packages that bring no types; their values are `any` here, as for many of their users.
declare module 'better-sqlite3';
declare module 'express';
declare module 'express4';
declare module 'koa';

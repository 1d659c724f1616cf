// The libraries that make uamp-clients installs, outside of this directory.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const { resolve } = createRequire(process.env.UAMP_CLIENTS + '/');
const load = (name) => import(pathToFileURL(resolve(name)).href);

export const jose = await load('jose');
export const { default: canonicalize } = await load('canonicalize');

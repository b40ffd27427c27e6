import type { Plugin } from 'esbuild'

export const replaceModules: Plugin
export const omitHttp2: Plugin
export const banner: string
export function adapted(text: string, file: string): string

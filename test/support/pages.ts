import type { PagesConfig } from '../../src/config/model/pages.ts'
import { Pages } from '../../src/pages/pages.ts'

const light = { background: '#f2f4f7', surface: '#ffffff', text: '#1d2330', accent: '#1a4fa3', onAccent: '#ffffff' }
const dark = { background: '#14171e', surface: '#1c2029', text: '#e4e7ee', accent: '#8ab4f8', onAccent: '#000000' }

/** The settings of pages when `pages` is absent from the configuration. */
export const plainPages: PagesConfig = {
  name: undefined,
  logo: undefined,
  language: 'en',
  colours: { light, dark },
  support: undefined,
  templates: {},
}

export function pagesWith(config: Partial<PagesConfig> = {}): Pages {
  return new Pages({ ...plainPages, ...config }, '/.gatehouse/')
}

import type { PageName, PageTemplate } from '../../core/page-names.ts'
import type { PagesColoursLightSettings } from '../settings.ts'

/** The languages of the built-in pages (BCP 47). */
export const languages = ['en', 'de', 'fr', 'ja'] as const
export type Language = (typeof languages)[number]

/** The pages of the gateway itself. */
export interface PagesConfig {
  /** Absent: pages show no name. */
  readonly name: string | undefined
  /** A `data:` URI. */
  readonly logo: string | undefined
  readonly language: Language
  readonly colours: { readonly light: ColorsConfig; readonly dark: ColorsConfig }
  readonly support: SupportConfig | undefined
  /** Templates of the operator, which replace built-in pages. */
  readonly templates: Readonly<Partial<Record<PageName, PageTemplate>>>
}

/** Each as `#rrggbb`. */
export interface ColorsConfig extends PagesColoursLightSettings {
  /** The color of the text on a button. */
  readonly onAccent: string
}

/** Where a person gets help. */
export interface SupportConfig {
  readonly text: string
  /** `https:`, `http:` or `mailto:`; absent: the text has no link. */
  readonly url: string | undefined
}

import type { Language } from '../config/model/pages.ts'
import { de } from './messages/de.ts'
import { en } from './messages/en.ts'
import { fr } from './messages/fr.ts'
import { ja } from './messages/ja.ts'
import type { Messages } from './messages/messages.ts'

/** The messages of pages by language. */
export const messagesByLanguage: Readonly<Record<Language, Messages>> = { en, de, fr, ja }

// Each file here is about one advisory, or several alike, that was published about another gateway,
// proxy or library. They are run in one process, which costs a fraction of what eighty do; each can
// be run alone: `npm test -- test/advisories/cve-….ts`.
import { readdirSync } from 'node:fs'

for (const file of readdirSync(import.meta.dirname).sort()) if (/^(?:cve|ghsa)-/.test(file)) await import(`./${file}`)

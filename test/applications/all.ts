import process from 'node:process'

// All journeys run in one process, so that they share one browser and one Keycloak. Run by `npm run
// test:applications`, which names the applications.
for (const name of (process.env['APPLICATIONS'] ?? '').split(',')) await import(`./${name}.journey.ts`)

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { startCommand } from '../support/command.ts'

// The page quotes the real output of the commands. `UPDATE=1` regenerates the quotes; then review
// the page as its reader.
const file = new URL('../../docs/cli.md', import.meta.url)
const folder = new URL('shown/', import.meta.url).pathname
const env = { CLIENT_SECRET: 'correct horse battery' }

const page = readFileSync(file, 'utf8')
const blocks = [...page.matchAll(/^```console\n\$ gatehouse (.*)\n([^]*?)^```$/gm)]

/** Both streams as a terminal shows them: standard error first. */
async function shown(t: Parameters<typeof startCommand>[0], line: string): Promise<string> {
  const args = line.split(/ (?=(?:[^']*'[^']*')*[^']*$)/).map((arg) => arg.replaceAll("'", ''))
  const command = startCommand(t, args, { cwd: folder, env })
  await command.ended
  return command.err() + command.out()
}

for (const [block, line = '', text] of blocks)
  test(`docs/cli.md quotes the real output: gatehouse ${line}`, async (t) => {
    const printed = await shown(t, line)

    if (process.env['UPDATE'] === '1')
      writeFileSync(
        file,
        readFileSync(file, 'utf8').replace(block, () => `\`\`\`console\n$ gatehouse ${line}\n${printed}\`\`\``),
      )
    else assert.equal(printed, text)
  })

test('docs/cli.md quotes output', () => {
  assert.ok(blocks.length >= 2)
})

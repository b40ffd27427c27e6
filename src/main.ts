#!/usr/bin/env node
// The program is loaded after this check, because its modules fail to load in older versions.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || major === 23 || (major === 22 && minor < 21) || (major === 24 && minor < 9)) {
  const needed = 'Gatehouse needs 22.21 or a newer 22, 24.9 or a newer 24, or 26'
  process.stderr.write(`gatehouse: This is Node.js ${process.versions.node}. ${needed}.\n`)
  process.exit(1)
}
const { main } = await import('./cli/main.ts')

process.exitCode = await main(process.argv.slice(2))
// The end of a long output may still wait for a slow reader.
const outputs = [process.stdout, process.stderr].filter(({ writableLength }) => writableLength > 0)
await Promise.all(outputs.map((output) => new Promise<void>((resolve) => output.write('', () => resolve()))))
// Connections that are still open, to a Redis that hangs for example, must not keep the process.
process.exit()

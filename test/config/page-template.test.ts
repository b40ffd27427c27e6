import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePageTemplate } from '../../src/config/build/page-template.ts'
import { processorTime } from '../support/processor-time.ts'

const known = ['title', 'logo_url']

/** What is wrong, each as the text from its place on. */
function faultsOf(html: string): string[] {
  return parsePageTemplate(html, known).faults.map(
    ({ offset, message }) => `${html.slice(offset, offset + 9)}: ${message}`,
  )
}

for (const html of [
  '<h1>{{title}}</h1>',
  '{{title}}',
  '<title>{{ title }}</title>',
  '<a href="{{title}}" title=\'{{title}}\'>',
  '<img alt="" src="{{logo_url}}">',
  '<a title = "a > b {{title}}">',
  '<!-- <a title={{title}}> --> {{title}}',
  '<p class="}}{{title}}{">',
  '<style>a{b:c}</style>{{title}}',
  '1 < 2 {{title}}',
])
  test(`A placeholder is allowed here: ${html}`, () => {
    const { faults, template } = parsePageTemplate(html, known)

    assert.deepEqual(faults, [])
    assert.equal(
      template.parts.map((part) => (typeof part === 'string' ? part : `{{${part.placeholder}}}`)).join(''),
      html.replaceAll('{{ title }}', '{{title}}'),
    )
  })

for (const [html, fault] of [
  ['<h1>{{titel}}</h1>', '{{titel}}: {{titel}} is not known on this page'],
  ['<h1>{{}}</h1>', '{{}}</h1>: {{}} is not known on this page'],
  ['<h1>{{title}</h1>', '{{title}<: "{{" does not begin a placeholder'],
  ['<h1>{{title\n}}</h1>', '{{title\n}: "{{" does not begin a placeholder'],
  ['<h1>{{{title}}}</h1>', '{{{title}: "{{" does not begin a placeholder'],
  ['<a href={{title}}>', '{{title}}: a placeholder is not allowed here'],
  ['<a href=x"{{title}}">', '{{title}}: a placeholder is not allowed here'],
  ['<a title= href="{{title}}">', '{{title}}: a placeholder is not allowed here'],
  ['<a {{title}}>', '{{title}}: a placeholder is not allowed here'],
  ['<a {{title}}="a">', '{{title}}: a placeholder is not allowed here'],
  ['<a onclick="{{title}}">', '{{title}}: a placeholder is not allowed here'],
  ['<a ONCLICK = "{{title}}">', '{{title}}: a placeholder is not allowed here'],
  ['<a style="{{title}}">', '{{title}}: a placeholder is not allowed here'],
  ['<iframe srcdoc="{{title}}">', '{{title}}: a placeholder is not allowed here'],
  ['<style>{{title}}</style>', '{{title}}: a placeholder is not allowed within <style>'],
  ['<STYLE>a{}</p>{{title}}', '{{title}}: a placeholder is not allowed within <style>'],
  ['<script>let a = "{{title}}"</script>', '{{title}}: a placeholder is not allowed within <script>'],
] as const)
  test(`A placeholder is rejected here: ${html}`, () => {
    assert.deepEqual(faultsOf(html), [fault])
  })

test('A part of a template that has no effect in browsers is a warning', () => {
  const html =
    '<link rel="icon"><script></script><p style="color: red"><img src="logo.png"><img src="data:image/png,"><IFRAME>'

  const { warnings, faults } = parsePageTemplate(html, known)

  assert.deepEqual(faults, [])
  assert.deepEqual(
    warnings.map(({ offset }) => /^<?\w+/.exec(html.slice(offset))?.[0]),
    ['<link', '<script', 'style', 'src', '<IFRAME'],
  )
})

test('The styles of a template are read as browsers read them', () => {
  const { template } = parsePageTemplate('<style media="print">a\r\nb\rc</style >x<STYLE>d</STYLE><style>e', known)

  assert.deepEqual(template.styles, ['a\nb\nc', 'd', 'e'])
})

test('The template parser takes linear time for any text', () => {
  for (const piece of ['<a "', "<a '", '<a ', '<!--', '{{', '<style>', '<a b="c" ', '"', '<', '{{title}}'])
    for (const length of [60_000]) {
      const busy = processorTime()
      parsePageTemplate(piece.repeat(length / piece.length), known)
      assert.ok(busy() < 2000, piece)
    }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Listeners } from '../../../src/listener/plain/plain-request.ts'

test('A listener that another one adds and removes others for keeps being called', () => {
  const called: string[] = []
  const listeners = new Listeners()
  const second = () => called.push('the second')
  listeners.once('close', () => {
    called.push('the first')
    listeners.off('close', second)
    listeners.on('close', () => called.push('one that was added'))
  })
  listeners.once('close', second)

  listeners.emit('close')
  listeners.emit('close')

  assert.deepEqual(called, ['the first', 'the second', 'one that was added'])
})

test('A listener for one call is called once, and the others each time', () => {
  const called: string[] = []
  const listeners = new Listeners()
  listeners.once('end', () => called.push('once'))
  listeners.emit('end')
  listeners.emit('end')
  listeners.on('end', () => called.push('each time'))
  listeners.once('end', () => called.push('once more'))
  listeners.emit('end')
  listeners.emit('end')

  assert.deepEqual(called, ['once', 'each time', 'once more', 'each time'])
})

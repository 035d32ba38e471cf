/*
 * Payload codecs for tests: real encryption, and one whose answers come late and out of order.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { PayloadCodec } from '../../src/store/codec/codec_store.ts'

interface Sealed {
  iv: string
  tag: string
  body: string
}

/** AES-256-GCM under a key of its own, or the given one of 32 bytes. */
export function aesCodec(key: Buffer = randomBytes(32)): PayloadCodec {
  return {
    encode(value) {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, iv)
      const body = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
      return {
        iv: iv.toString('base64'),
        tag: cipher.getAuthTag().toString('base64'),
        body: body.toString('base64'),
      }
    },
    decode(value) {
      const { iv, tag, body } = value as Sealed
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64'))
      decipher.setAuthTag(Buffer.from(tag, 'base64'))
      const plain = Buffer.concat([decipher.update(Buffer.from(body, 'base64')), decipher.final()])
      return JSON.parse(plain.toString('utf8'))
    },
  }
}

/** The same codec, every answer some rounds of the event loop later. */
export function lateCodec(codec: PayloadCodec): PayloadCodec {
  let calls = 0
  const late = async (work: () => unknown) => {
    for (let rounds = (calls += 1) % 3; rounds > 0; rounds--) await new Promise(setImmediate)
    return work()
  }
  return {
    encode: (value) => late(() => codec.encode(value)),
    decode: (value) => late(() => codec.decode(value)),
  }
}

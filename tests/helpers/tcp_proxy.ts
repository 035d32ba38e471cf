/*
 * A server as a client reaches it over a network that can fail: while the line is cut, connections are gone
 * and new ones are refused. A connection that is stalled stays open and carries nothing any more.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

const HOST = '127.0.0.1'

export class TcpProxy {
  readonly #target: { host: string; port: number }
  readonly #sockets = new Set<Socket>()
  readonly #stalled = new WeakSet<Socket>()
  #server?: Server
  #port = 0
  /** Connections taken so far. */
  accepted = 0
  /** Chunks of clients that a stalled connection did not carry. */
  swallowed = 0

  private constructor(target: { host: string; port: number }) {
    this.#target = target
  }

  static async to(target: { host: string; port: number }): Promise<TcpProxy> {
    const proxy = new TcpProxy(target)
    await proxy.mend()
    return proxy
  }

  /** The same URL by way of the proxy. */
  urlOf(url: string): string {
    const through = new URL(url)
    through.host = `${HOST}:${this.#port}`
    return through.href
  }

  get isCut(): boolean {
    return this.#server === undefined
  }

  /** At once: what was on its way is lost, on either side. */
  cut(): void {
    this.#server?.close()
    this.#server = undefined
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
  }

  /** The connections of this moment carry nothing any more; new ones do. */
  stall(): void {
    for (const socket of this.#sockets) this.#stalled.add(socket)
  }

  /** Takes connections again, at the port of before. */
  async mend(): Promise<void> {
    const server = createServer((client) => this.#join(client))
    server.listen(this.#port, HOST)
    await once(server, 'listening')
    this.#port = (server.address() as AddressInfo).port
    this.#server = server
  }

  #join(client: Socket): void {
    const server = connect(this.#target)
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.setNoDelay(true)
      // One end takes the other with it; an error says no more than that it did.
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        client.destroy()
        server.destroy()
      })
    }
    this.accepted += 1
    client.on('data', (chunk) => {
      if (this.#stalled.has(client)) this.swallowed += 1
      else server.write(chunk)
    })
    server.on('data', (chunk) => void (this.#stalled.has(server) || client.write(chunk)))
    client.on('end', () => void (this.#stalled.has(client) || server.end()))
    server.on('end', () => void (this.#stalled.has(server) || client.end()))
  }
}

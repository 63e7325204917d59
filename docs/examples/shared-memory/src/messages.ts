import type { DescriptorSocket } from '@shoal/driver'

/** Messages after the handle has been sent. */
export type Message = 'mapped' | 'written'

export async function say(socket: DescriptorSocket, message: Message): Promise<void> {
  await socket.send({ bytes: Buffer.from(message) })
}

/** The next message, or undefined when the other process has closed the socket, by its end for one. */
export async function hear(socket: DescriptorSocket, signal?: AbortSignal): Promise<Message | undefined> {
  try {
    const { bytes } = await socket.receive({ signal })
    const text = Buffer.from(bytes).toString()
    if (text === 'mapped' || text === 'written') return text
    throw new Error(`unexpected message ${JSON.stringify(text)}`)
  } catch (error) {
    if (isClosed(error)) return undefined
    throw error
  }
}

export function isClosed(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  return code === 'ECONNRESET' || code === 'EPIPE'
}

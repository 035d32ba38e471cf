/*
 * Runs ace commands: node ace durable:work
 */
import '@poppinss/ts-exec'

await import('./bin/console.js')

# SPDX-License-Identifier: MIT
# A service: each line of stdin is a request; Array#each calls what handles it.

LOCK = Mutex.new
LIVE = Array.new(2_000_000) { |i| [i] }

def behind
  begun = Queue.new
  Thread.new do
    LOCK.synchronize do
      begun << true
      sleep 0.15
    end
  end
  begun.pop
end

CAUSES = {
  'quick' => -> {},
  'gc' => -> { GC.start },
  'regexp' => -> { /\A(a|a)*\z/.match('a' * 22 + 'c') },
  'mutex' => -> { LOCK.synchronize {} },
}.freeze

$stdout.sync = true
puts 'ready'
while (what = $stdin.gets)
  what.chomp!
  behind if what == 'mutex'
  handler = CAUSES[what]
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  [handler].each(&:call)
  puts "total=#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - start}"
end

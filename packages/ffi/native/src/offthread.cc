#include "offthread.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "calls.h"
#include "context.h"
#include "environment.h"
#include "threads.h"

namespace shoal {
namespace {

struct Job {
  uint64_t id = 0;
  std::unique_ptr<Recording> recording;
  uint64_t context = 0;
  bool stop_on_error = true;
  bool wants_values = false;
  bool is_quiet = false;
  std::shared_ptr<Mailbox> mailbox;
  int context_status = 0;
  std::vector<CallResult> results;
};

// Returns true if the next call of the sequence is to run.
bool RunCall(Job& job, const RecordedCall& call) {
  CallResult result;
  const int context_status = Invoke(call, &result);
  const int64_t status = result.Status();
  if (context_status != 0 && status == 0) {
    // The function does not return a status, so the job carries the failure.
    job.context_status = context_status;
    return false;
  }
  job.results.push_back(std::move(result));
  return status == 0 || !job.stop_on_error;
}

void RunCalls(Job& job) {
  const Recording& recording = *job.recording;
  job.results.reserve(recording.calls.size() + recording.repeats.size());
  for (const RecordedCall& call : recording.calls)
    if (!RunCall(job, call)) return;
  if (recording.repeats.empty()) return;
  RecordedCall again = recording.calls.back();
  for (const uint64_t word : recording.repeats) {
    again.arguments[0] = word;
    if (!RunCall(job, again)) return;
  }
}

void RunJob(Job& job) {
  if (job.context == 0) return RunCalls(job);
  ContextScope scope(job.context);
  job.context_status = scope.status();
  if (job.context_status == 0) RunCalls(job);
}

void Finish(Napi::Env env, const Job& job) {
  Environment& environment = Environment::Of(env);
  const auto failed = [](const CallResult& result) { return result.Status() != 0; };
  if (job.is_quiet && job.context_status == 0 && std::none_of(job.results.begin(), job.results.end(), failed)) {
    environment.on_job.Call({Napi::Number::New(env, static_cast<double>(job.id)), Napi::Number::New(env, 0)});
    return;
  }
  Napi::Array results = Napi::Array::New(env, job.results.size());
  for (uint32_t i = 0; i < job.results.size(); ++i) {
    const CallResult& result = job.results[i];
    results[i] = job.wants_values ? result.ToValue(env) : Napi::Number::New(env, static_cast<double>(result.Status()));
  }
  environment.on_job.Call(
      {Napi::Number::New(env, static_cast<double>(job.id)), Napi::Number::New(env, job.context_status), results});
}

void StartRecording(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::Of(info.Env());
  if (environment.recording != nullptr)
    throw Napi::Error::New(info.Env(), "calls for another thread are being recorded already");
  environment.recording = new Recording;
}

void DropRecording(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::Of(info.Env());
  delete environment.recording;
  environment.recording = nullptr;
}

// pauseRecording(paused): while paused, calls run at once and are not recorded.
void PauseRecording(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::Of(info.Env());
  const bool pause = info[0].As<Napi::Boolean>();
  if (pause == (environment.recording != nullptr)) std::swap(environment.recording, environment.paused);
}

// keep(address): keeps the memory alive until the recorded calls have run.
void Keep(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::Of(info.Env());
  bool lossless = false;
  MemoryHandle memory = FindMemory(info[0].As<Napi::BigInt>().Uint64Value(&lossless));
  if (environment.recording != nullptr && memory != nullptr) environment.recording->kept.push_back(std::move(memory));
}

// repeat(words, count): repeats the last recorded call with each of the first `count` words as its first argument.
void Repeat(const Napi::CallbackInfo& info) {
  Recording* recording = Environment::Of(info.Env()).recording;
  if (recording == nullptr || recording->calls.empty()) throw Napi::Error::New(info.Env(), "no call was recorded");
  const auto words = info[0].As<Napi::BigUint64Array>();
  recording->repeats.assign(
      words.Data(), words.Data() + std::min<size_t>(info[1].As<Napi::Number>().Uint32Value(), words.ElementLength()));
}

// Moves the recording into a new job.
std::shared_ptr<Job> JobOf(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::Of(info.Env());
  bool lossless = false;
  auto job = std::make_shared<Job>();
  job->id = static_cast<uint64_t>(info[0].As<Napi::Number>().Int64Value());
  job->context = info[1].As<Napi::BigInt>().Uint64Value(&lossless);
  job->mailbox = environment.mailbox;
  // Take the recording last. If anything above throws, the caller still has the recording and can drop it.
  job->recording.reset(std::exchange(environment.recording, nullptr));
  if (job->recording == nullptr) throw Napi::Error::New(info.Env(), "no calls were recorded");
  return job;
}

Lane& LaneOf(const Napi::Value& value) { return **value.As<Napi::External<std::shared_ptr<Lane>>>().Data(); }

// run(id, context, stopOnError, wantsValues, lane | null): takes the recording and starts it. Returns false if the
// system has no thread for it.
Napi::Value Run(const Napi::CallbackInfo& info) {
  auto job = JobOf(info);
  job->stop_on_error = info[2].As<Napi::Boolean>();
  job->wants_values = info[3].As<Napi::Boolean>();
  Task task = [job] {
    RunJob(*job);
    job->mailbox->Post([job](Napi::Env delivery) { Finish(delivery, *job); });
  };
  const bool started = info[4].IsExternal() ? LaneOf(info[4]).Run(std::move(task)) : RunOnThread(std::move(task));
  return Napi::Boolean::New(info.Env(), started);
}

// runQuietly(id, context, lane, isPrompt): makes all calls on the lane. Wakes the event loop when the calls have
// returned if isPrompt is set, and otherwise when the lane is idle.
Napi::Value RunQuietly(const Napi::CallbackInfo& info) {
  auto job = JobOf(info);
  job->stop_on_error = false;
  job->is_quiet = true;
  const bool is_prompt = info[3].As<Napi::Boolean>();
  Task task = [job, is_prompt] {
    RunJob(*job);
    job->mailbox->PostQuietly([job](Napi::Env delivery) { Finish(delivery, *job); });
    if (is_prompt) job->mailbox->WakeForQuiet();
  };
  return Napi::Boolean::New(
      info.Env(), LaneOf(info[2]).Run(std::move(task), [mailbox = job->mailbox] { mailbox->WakeForQuiet(); }));
}

// deliverQuiet(): reports the runQuietly() jobs that have completed to JavaScript.
void DeliverQuiet(const Napi::CallbackInfo& info) { Environment::Of(info.Env()).mailbox->DeliverQuiet(info.Env()); }

// takeRecording(): the calls recorded so far, for replay().
Napi::Value TakeRecording(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::Of(info.Env());
  if (environment.recording == nullptr) throw Napi::Error::New(info.Env(), "no calls are being recorded");
  auto* recording = std::exchange(environment.recording, nullptr);
  return Napi::External<Recording>::New(info.Env(), recording, [](Napi::Env, Recording* data) { delete data; });
}

// replay(recording, ignored): makes all calls of the recording on this thread. Returns the first status that is neither
// 0 nor `ignored`.
Napi::Value Replay(const Napi::CallbackInfo& info) {
  const int64_t ignored = info[1].As<Napi::Number>().Int64Value();
  const int64_t first = Make(*info[0].As<Napi::External<Recording>>().Data(), ignored);
  return Napi::Number::New(info.Env(), static_cast<double>(first));
}

// keepRecording(): the calls recorded so far run when the thread ends. Returns a number for forgetRecording().
Napi::Value KeepRecording(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::Of(info.Env());
  if (environment.recording == nullptr) throw Napi::Error::New(info.Env(), "no calls are being recorded");
  // Numbers are never reused, so that forgetting one twice cannot forget another recording.
  const uint32_t number = ++environment.last_at_end;
  environment.at_end[number].reset(std::exchange(environment.recording, nullptr));
  return Napi::Number::New(info.Env(), number);
}

void ForgetRecording(const Napi::CallbackInfo& info) {
  Environment::Of(info.Env()).at_end.erase(info[0].As<Napi::Number>().Uint32Value());
}

Napi::Value CreateLane(const Napi::CallbackInfo& info) {
  auto* lane = new std::shared_ptr<Lane>(std::make_shared<Lane>());
  return Napi::External<std::shared_ptr<Lane>>::New(info.Env(), lane, [](Napi::Env, std::shared_ptr<Lane>* data) {
    (*data)->Close();
    delete data;
  });
}

// deliver(nanoseconds): reports to JavaScript what has completed, or completes within that time.
void DeliverEnded(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Environment::Of(env).mailbox->DeliverNow(env, std::chrono::nanoseconds(info[0].As<Napi::Number>().Int64Value()));
}

// setAsking(isAsking): while true, JavaScript polls with deliver() and nothing wakes the event loop.
void SetAsking(const Napi::CallbackInfo& info) {
  Environment::Of(info.Env()).mailbox->SetAsked(info[0].As<Napi::Boolean>());
}

// waitForLane(lane, milliseconds): blocks until all queued tasks have run. Returns false on timeout.
Napi::Value WaitForLane(const Napi::CallbackInfo& info) {
  const std::chrono::milliseconds patience(info[1].As<Napi::Number>().Int64Value());
  return Napi::Boolean::New(info.Env(), LaneOf(info[0]).WaitUntilIdle(patience));
}

void CloseLane(const Napi::CallbackInfo& info) { LaneOf(info[0]).Close(); }

}  // namespace

void DefineOffThread(Napi::Env env, Napi::Object exports) {
  exports.Set("startRecording", Napi::Function::New(env, StartRecording, "startRecording"));
  exports.Set("dropRecording", Napi::Function::New(env, DropRecording, "dropRecording"));
  exports.Set("takeRecording", Napi::Function::New(env, TakeRecording, "takeRecording"));
  exports.Set("keepRecording", Napi::Function::New(env, KeepRecording, "keepRecording"));
  exports.Set("forgetRecording", Napi::Function::New(env, ForgetRecording, "forgetRecording"));
  exports.Set("replay", Napi::Function::New(env, Replay, "replay"));
  exports.Set("pauseRecording", Napi::Function::New(env, PauseRecording, "pauseRecording"));
  exports.Set("keep", Napi::Function::New(env, Keep, "keep"));
  exports.Set("repeat", Napi::Function::New(env, Repeat, "repeat"));
  exports.Set("run", Napi::Function::New(env, Run, "run"));
  exports.Set("runQuietly", Napi::Function::New(env, RunQuietly, "runQuietly"));
  exports.Set("deliverQuiet", Napi::Function::New(env, DeliverQuiet, "deliverQuiet"));
  exports.Set("hasSpareProcessors", Napi::Boolean::New(env, HasSpareProcessors()));
  exports.Set("deliver", Napi::Function::New(env, DeliverEnded, "deliver"));
  exports.Set("setAsking", Napi::Function::New(env, SetAsking, "setAsking"));
  exports.Set("createLane", Napi::Function::New(env, CreateLane, "createLane"));
  exports.Set("waitForLane", Napi::Function::New(env, WaitForLane, "waitForLane"));
  exports.Set("closeLane", Napi::Function::New(env, CloseLane, "closeLane"));
}

}  // namespace shoal

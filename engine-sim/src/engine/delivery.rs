//! The end of a step: tokens become text and go to their clients; sequences that end leave their KV to the decode worker or free it.

use super::compute::{Job, Produced, Worker};
use super::core::Core;
use super::request::{Event, Finish, FinishReason, KvIntent, StopReason, Token};
use crate::kv::HandOff;

impl Core {
    pub(super) fn deliver(&mut self, produced: Vec<(usize, Produced)>) {
        let now = self.clock.now().as_secs_f64();
        let mut ended = Vec::new();
        for (at, token) in produced {
            let job = &mut self.jobs[at];
            job.generated.push(token.id);
            self.metrics.generation_tokens += 1;
            if job.generated.len() == 1 {
                job.times.first_token = now;
                self.metrics.ttft.observe(now - job.sub.arrived.as_secs_f64());
            } else {
                self.metrics.inter_token.observe(now - job.times.last_token);
            }
            job.times.last_token = now;
            let (text, end) = Self::judge(&self.worker, job, token.id);
            let finish = end.map(|(reason, stop)| {
                ended.push((at, reason));
                (reason, stop)
            });
            let finish = finish.map(|(reason, stop)| self.finish(at, reason, stop));
            let event = Token {
                id: token.id,
                text,
                logprobs: token.logprobs,
                finish,
            };
            let _ = self.jobs[at].sub.events.send(Event::Token(event));
        }
        for (at, reason) in ended.into_iter().rev() {
            let job = self.jobs.remove(at);
            self.count_finished(&job, reason);
        }
    }

    /// The text that a token adds, and whether the sequence ends with it.
    fn judge(worker: &Worker, job: &mut Job, id: u32) -> (String, Option<(FinishReason, Option<StopReason>)>) {
        let limits = &job.sub.limits;
        let may_stop = job.generated.len() >= limits.min_tokens;
        let eos = id == worker.assets.model.config().eos_token_id && !limits.ignore_eos && job.sub.recorded.is_none();
        let by_token = may_stop && limits.stop_token_ids.contains(&id);
        let full = job.generated.len() >= job.budget;
        let last = full || (may_stop && eos) || by_token;
        let bytes = if by_token && !limits.include_stop {
            &[][..]
        } else {
            worker.assets.codec.piece(id)
        };
        let piece = job.text.push(bytes, &limits.stop, limits.include_stop, may_stop, last);
        let end = if let Some(found) = piece.stopped_by {
            Some((
                FinishReason::Stop,
                limits.stop.get(found).cloned().map(StopReason::Text),
            ))
        } else if may_stop && eos {
            Some((FinishReason::Stop, None))
        } else if by_token {
            Some((FinishReason::Stop, Some(StopReason::Token(id))))
        } else {
            full.then_some((FinishReason::Length, None))
        };
        (piece.text, end)
    }

    /// Ends a sequence: its blocks are pinned for the decode worker, or free.
    fn finish(&mut self, at: usize, reason: FinishReason, stop: Option<StopReason>) -> Box<Finish> {
        let job = &mut self.jobs[at];
        let experts = self.worker.take_rows(job);
        let mut table = std::mem::take(&mut job.table);
        let mut hand_off = None;
        if let (KvIntent::HandOff, Some((host, port))) = (&job.sub.kv, &self.options.side_channel) {
            let tokens = job.sub.prompt.len() + job.generated.len() - 1;
            let spare = table.split_off(self.worker.pool.needed(tokens).min(table.len()));
            self.worker.pool.give_back(spare);
            hand_off = Some(HandOff {
                do_remote_prefill: true,
                do_remote_decode: false,
                remote_block_ids: vec![table.clone()],
                remote_engine_id: self.options.engine_id.clone(),
                remote_request_id: job.sub.id.clone(),
                remote_host: host.clone(),
                remote_port: *port,
                tp_size: 1,
                dcp_size: 1,
                pp_size: 1,
                remote_num_tokens: tokens,
                remote_blocks_expiry_time: None,
                transfer_mode: "pull".to_owned(),
            });
            self.pins
                .hold(job.sub.id.clone(), table, self.clock.now() + self.options.lease);
        } else {
            self.worker.pool.give_back(table);
        }
        Box::new(Finish {
            reason,
            stop,
            experts,
            hand_off,
        })
    }

    fn count_finished(&mut self, job: &Job, reason: FinishReason) {
        let (times, generated) = (job.times, job.generated.len() as f64);
        self.sim.finished += 1;
        self.sim.recorded += u64::from(job.sub.recorded.is_some());
        match reason {
            FinishReason::Stop => self.metrics.success_stop += 1,
            FinishReason::Length => self.metrics.success_length += 1,
        }
        let m = &mut self.metrics;
        let prompt = job.sub.prompt.len();
        m.prompt_tokens += prompt as u64;
        m.prefix_queries += prompt as u64;
        m.e2e.observe(times.last_token - job.sub.arrived.as_secs_f64());
        m.inference.observe(times.last_token - times.admitted);
        m.prefill.observe(times.first_token - times.admitted);
        m.decode.observe(times.last_token - times.first_token);
        let gaps = (generated - 1.0).max(1.0);
        m.per_output_token
            .observe((times.last_token - times.first_token) / gaps);
        m.request_prompt_tokens.observe(prompt as f64);
        m.request_generation_tokens.observe(generated);
        m.request_max_tokens.observe(job.sub.limits.max_tokens as f64);
        let local = if matches!(job.sub.kv, KvIntent::Pull(_)) {
            0
        } else {
            prompt
        };
        m.prefill_computed_tokens.observe(local as f64);
    }
}

//! The child's side of a trial, and the files through which it talks: a job in, a stage and a verdict out.
//!
//! Files and not pipes: an engine may print, close descriptors or fork, and none of that may mix with the answer.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use hermes_engine_abi as abi;

use super::{Job, Verdict};
use crate::plugin::load::open::{self, OpenRequest};
use crate::plugin::load::{CreateTexts, Refusal, trial};

pub(super) fn write_job(scratch: &Path, job: &Job) -> io::Result<()> {
    fs::write(scratch.join("job"), serde_json::to_vec(job)?)
}

pub(super) fn read_verdict(scratch: &Path) -> Option<Verdict> {
    let bytes = fs::read(scratch.join("verdict")).ok()?;
    serde_json::from_slice(&bytes).ok()
}

pub(super) fn read_stage(scratch: &Path) -> String {
    fs::read_to_string(scratch.join("stage")).unwrap_or_default()
}

/// Does the job that lies in the folder.
pub(super) fn main(scratch: &Path) -> ExitCode {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{
            Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit,
        };
        // Nobody waits for a child whose parent has gone, and a crash here is expected: no dump of it.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        let none = Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        let _ = setrlimit(Resource::Core, none);
    }
    let job = fs::read(scratch.join("job")).map_err(|error| error.to_string());
    let job =
        job.and_then(|job| serde_json::from_slice::<Job>(&job).map_err(|error| error.to_string()));
    let job = match job {
        Ok(job) => job,
        Err(error) => {
            eprintln!("error: {}: {error}", scratch.display());
            return ExitCode::from(2);
        }
    };
    let stage = |stage: &str| {
        let _ = fs::write(scratch.join("stage"), stage);
    };
    let verdict = match attempt(&job, scratch, &stage) {
        Ok(verdict) => verdict,
        Err(refusal) => Verdict::bad(&refusal),
    };
    stage("while the process ended");
    let draft = scratch.join("verdict.new");
    let written = serde_json::to_vec(&verdict)
        .map_err(io::Error::from)
        .and_then(|bytes| fs::write(&draft, bytes))
        .and_then(|()| fs::rename(&draft, scratch.join("verdict")));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: the verdict cannot be written: {error}");
            ExitCode::from(2)
        }
    }
}

fn attempt(job: &Job, scratch: &Path, stage: &dyn Fn(&str)) -> Result<Verdict, Refusal> {
    let data_dir = scratch.join("data");
    let _ = fs::create_dir(&data_dir);
    let purpose = match job.settings {
        Some(_) => abi::FOR_TEMPLATE,
        None => abi::FOR_PROBE,
    };
    let texts = CreateTexts {
        config: job.settings.clone().unwrap_or_else(|| "{}".to_owned()),
        data_dir: data_dir.to_string_lossy().into_owned(),
        plugin_dir: job.plugin_dir.to_string_lossy().into_owned(),
    };
    let opened = open::open(&OpenRequest {
        library: &job.library,
        has_entry: job.has_entry,
        promised: None,
        texts: &texts,
        purpose,
        taken: false,
        stage,
    })?;
    let Some((module, registered)) = opened.engine else {
        return Ok(Verdict::without_engine());
    };
    let mut verdict = Verdict::good(&module, opened.layout, opened.refused);
    if let Err(error) = trial::run(&module, registered, &texts, purpose, stage) {
        // What it is stays worth showing.
        verdict.refuse(&error.into());
    }
    Ok(verdict)
}

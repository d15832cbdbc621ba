//! HTTP/1.1, as much of it as a provider needs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::answer::{Answer, Form, Half};
use super::behaviour::Plan;
use super::{Behaviour, Request, Shared};

/// Takes connections until the server is dropped.
pub(super) fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.is_stopped() {
            return;
        }
        let Ok(stream) = stream else { continue };
        shared.connections.fetch_add(1, Ordering::SeqCst);
        if let Ok(copy) = stream.try_clone() {
            shared.state().open.push(copy);
        }
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // A client that goes away is no fault of the server's.
            let _ = Connection { stream, shared }.serve();
        });
    }
}

struct Connection {
    stream: TcpStream,
    shared: Arc<Shared>,
}

impl Connection {
    fn serve(mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        let mut reader = BufReader::new(self.stream.try_clone()?);
        while let Some(request) = read(&mut reader, &mut self.stream)? {
            let mut behaviour = self.shared.take(request.clone());
            while let Plan::By(answer) = &behaviour.plan {
                behaviour = answer(&request);
            }
            self.sleep(behaviour.delay);
            if !self.answer(&behaviour, &request)? {
                break;
            }
        }
        self.stream.shutdown(Shutdown::Both)
    }

    /// Whether the connection stays open.
    fn answer(&mut self, behaviour: &Behaviour, request: &Request) -> io::Result<bool> {
        match &behaviour.plan {
            Plan::By(_) => Ok(false),
            Plan::Silence => {
                self.silence();
                Ok(false)
            }
            Plan::Alive(bytes) => {
                self.stream_head(behaviour)?;
                while !self.shared.is_stopped() {
                    self.chunk(bytes)?;
                    self.sleep(Duration::from_millis(5));
                }
                Ok(false)
            }
            Plan::Refuse => self.reset(),
            Plan::Raw(bytes) => {
                self.head(behaviour, &format!("Content-Length: {}\r\n", bytes.len()))?;
                self.stream.write_all(bytes)?;
                Ok(true)
            }
            Plan::Events(events) => {
                self.stream_head(behaviour)?;
                for event in events {
                    self.chunk(format!("data: {event}\n\n").as_bytes())?;
                }
                self.end()
            }
            Plan::Answer(answer) if answer.form == Form::Json || !request.wants_stream() => {
                let body = answer.body(request);
                let length = body.len();
                let head =
                    format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
                self.head(behaviour, &head)?;
                if answer.half.is_some() {
                    self.stream.write_all(&body.as_bytes()[..length / 2])?;
                    return self.reset();
                }
                self.stream.write_all(body.as_bytes())?;
                Ok(true)
            }
            Plan::Answer(answer) => self.stream(behaviour, answer, request),
        }
    }

    fn stream(
        &mut self,
        behaviour: &Behaviour,
        answer: &Answer,
        request: &Request,
    ) -> io::Result<bool> {
        self.stream_head(behaviour)?;
        for (at, event) in answer.events(request).iter().enumerate() {
            if let Some((pieces, half)) = &answer.half
                && at == *pieces
            {
                return self.half(half, event);
            }
            let mut text = String::new();
            if answer.comments {
                text.push_str(": still there\n\n");
            }
            text.push_str(&format!("data: {event}\n\n"));
            for portion in text.as_bytes().chunks(answer.portion) {
                self.chunk(portion)?;
                self.sleep(answer.pause);
            }
        }
        if let Some((usize::MAX, Half::Stall)) = &answer.half {
            self.silence();
            return Ok(false);
        }
        self.end()
    }

    fn half(&mut self, half: &Half, event: &str) -> io::Result<bool> {
        match half {
            Half::Reset => {
                // What was sent before must arrive: a reset discards what the client has not read yet.
                self.sleep(Duration::from_millis(20));
                self.reset()
            }
            Half::Close => self.end().map(|_| false),
            Half::Torn => {
                let text = format!("data: {event}");
                let half = text.floor_char_boundary(text.len() / 2);
                self.chunk(&text.as_bytes()[..half])?;
                self.end().map(|_| false)
            }
            Half::Stall => {
                self.silence();
                Ok(false)
            }
            Half::Error(error) => {
                self.chunk(format!("data: {error}\n\n").as_bytes())?;
                self.end()
            }
        }
    }

    fn stream_head(&mut self, behaviour: &Behaviour) -> io::Result<()> {
        self.head(
            behaviour,
            "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n",
        )
    }

    fn head(&mut self, behaviour: &Behaviour, more: &str) -> io::Result<()> {
        let status = behaviour.status;
        let mut head = format!("HTTP/1.1 {status} Status\r\n{more}");
        for (name, value) in &behaviour.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.stream.write_all(head.as_bytes())
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.stream.write_all(&chunk)
    }

    fn end(&mut self) -> io::Result<bool> {
        self.stream.write_all(b"0\r\n\r\n")?;
        Ok(true)
    }

    /// Closes so that the other side sees a reset, not an end.
    fn reset(&mut self) -> io::Result<bool> {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))?;
        // Every copy of the socket must go for it to take effect.
        let address = self.stream.peer_addr()?;
        let mut state = self.shared.state();
        state
            .open
            .retain(|stream| stream.peer_addr().ok() != Some(address));
        Err(io::Error::other("reset"))
    }

    fn sleep(&self, pause: Duration) {
        let mut left = pause;
        while !left.is_zero() && !self.shared.is_stopped() {
            let step = left.min(Duration::from_millis(10));
            std::thread::sleep(step);
            left -= step;
        }
    }

    /// Until the server is dropped or the client has gone.
    fn silence(&self) {
        let _ = self
            .stream
            .set_read_timeout(Some(Duration::from_millis(10)));
        let mut byte = [0];
        while !self.shared.is_stopped() {
            match self.stream.peek(&mut byte) {
                Ok(0) => return,
                Err(error)
                    if !matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    return;
                }
                _ => {}
            }
        }
    }
}

/// Reads one request; `None` when the client has closed the connection.
fn read(reader: &mut BufReader<TcpStream>, writer: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }
    let mut request = Request {
        method,
        target,
        headers,
        body: Vec::new(),
    };
    if request.header("Expect").is_some() {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if let Some(length) = request
        .header("Content-Length")
        .and_then(|text| text.parse().ok())
    {
        request.body = vec![0; length];
        reader.read_exact(&mut request.body)?;
    } else if request.header("Transfer-Encoding").is_some() {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk)?;
            if size == 0 {
                break;
            }
            request.body.extend_from_slice(&chunk[..size]);
        }
    }
    Ok(Some(request))
}

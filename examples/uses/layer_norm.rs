// layer_norm.rs - layer norm from Rust, with the declarations made from docs/api.json. `make
// bindings` writes build/normlayers.rs and normlayers_pic.o; put the former beside this file, and
//
//     rustc -C link-arg=build/normlayers_pic.o -C link-arg=-lm -C link-arg=-lgcc layer_norm.rs
mod normlayers;
use normlayers::*;
use std::ffi::CStr;

// Over rows of `gamma.len()` features; the slices know their lengths, so the unsafe part is small.
fn layer_norm(x: &[f32], gamma: &[f32], beta: &[f32], eps: f32) -> Result<Vec<f32>, String> {
    let features = gamma.len();
    if features == 0 || beta.len() != features || x.len() % features != 0 {
        return Err("x, gamma and beta do not fit together".to_string());
    }
    let mut y = vec![0.0; x.len()];
    let none = std::ptr::null_mut(); // no backward pass, nothing to save
    let status = unsafe {
        nrm_layernorm_forward(y.as_mut_ptr(), none, none, x.as_ptr(), gamma.as_ptr(),
                              beta.as_ptr(), eps, x.len() / features, features)
    };
    if status != NRM_OK {
        let message = unsafe { CStr::from_ptr(nrm_strerror(status).cast()) };
        return Err(message.to_string_lossy().into_owned());
    }
    Ok(y)
}

fn main() {
    let x = [1.0, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0];
    match layer_norm(&x, &[1.0, 1.0, 2.0, 2.0], &[0.0, 0.0, 0.0, 1.0], 1e-5) {
        Ok(y) => y.chunks(4).for_each(|row| println!("{:8.4?}", row)),
        Err(e) => println!("error: {}", e),
    }
    println!("{}", layer_norm(&x, &[1.0; 4], &[0.0; 4], -1.0).unwrap_err());
}

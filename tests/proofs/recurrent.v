(* recurrent.v - RNN: T steps through the same weights, forward and back. *)

Require Import base batch_norm layer_norm network.

(* ---- All T steps ------------------------------------------------------------------------- *)

(* T steps, N sequences, I inputs, H units. The norm is any map of the summed inputs that takes
   paths to paths: layer norm along the rows, batch norm down the columns, or none. *)
Section Through_time.
Variables (T N I H : nat) (norm : matrix -> matrix) (γ β : nat -> R) (f f' : R -> R).

(* RNN.1 to RNN.3: a[t] = x[t]·Wx + h[t]·Wh, z[t] = γ·norm(a[t]) + β, h[t+1] = f(z[t]) *)
Definition summed (x h Wx Wh : matrix) : matrix :=
  fun n j => product I x Wx n j + product H h Wh n j.
Definition scaled (a : matrix) : matrix := fun n j => γ j * norm a n j + β j.
Definition step (x h Wx Wh : matrix) : matrix := fun n j => f (scaled (summed x h Wx Wh) n j).
Fixpoint states (x : nat -> matrix) (Wx Wh h0 : matrix) (t : nat) : matrix :=
  match t with O => h0 | S s => step (x s) (states x Wx Wh h0 s) Wx Wh end.

Variables (x : nat -> matrix) (Wx Wh h0 : matrix).
Notation h := (states x Wx Wh h0).
Notation a := (fun t => summed (x t) (h t) Wx Wh).
Notation z := (fun t => scaled (a t)).

(* The norm of step t has a derivative J t, and its adjoint is Jt t: RNN.5. f has one at each z. *)
Variables J Jt : nat -> matrix -> matrix.
Hypothesis J_is : forall t p s d, path2 p s (a t) d ->
  path2 (fun s => norm (p s)) s (norm (a t)) (J t d).
Hypothesis Jt_is : forall t d g, dot2 N H (J t d) g = dot2 N H d (Jt t g).
Hypothesis f'_is : forall t n j, is_derive f (z t n j) (f' (z t n j)).

(* e[t] is the loss's gradient by h[t] with the later states held fixed. *)
Variables (L : (nat -> matrix) -> R) (e : nat -> matrix).
Hypothesis dL : gradient3 (S T) N H L h e.

(* RNN.4 to RNN.6 *)
Variables dh dz da : nat -> matrix.
Hypothesis dz_is : forall t, (t < T)%nat -> forall n j, dz t n j = dh (S t) n j * f' (z t n j).
Hypothesis da_is : forall t, (t < T)%nat -> da t = Jt t (fun n j => dz t n j * γ j).
Hypothesis dh_is : forall t, (t < T)%nat -> forall n k,
  dh t n k = e t n k + ∑ j < H, da t n j * Wh k j.
Hypothesis dh_last : dh T = e T.

(* All inputs move along paths; so do the states, with the velocities vh. *)
Section Moving.
Variables (px : R -> nat -> matrix) (pWx pWh ph : R -> matrix) (s : R).
Variables (vx : nat -> matrix) (vWx vWh v0 : matrix).
Hypothesis Px : forall t, path2 (fun s => px s t) s (x t) (vx t).
Hypothesis Ex : px s = x.
Hypothesis PWx : path2 pWx s Wx vWx.
Hypothesis PWh : path2 pWh s Wh vWh.
Hypothesis Ph : path2 ph s h0 v0.

(* What reaches a[t] other than through h[t] *)
Definition source (t : nat) : matrix := fun n j =>
  product I (vx t) Wx n j + product I (x t) vWx n j + product H (h t) vWh n j.
Definition va (vh : matrix) (t : nat) : matrix := fun n j => source t n j + product H vh Wh n j.
Fixpoint vh (t : nat) : matrix :=
  match t with
  | O => v0
  | S s => fun n j => f' (z s n j) * (γ j * J s (va (vh s) s) n j)
  end.

Lemma along_states t :
  path2 (fun s => states (px s) (pWx s) (pWh s) (ph s) t) s (h t) (vh t).
Proof.
  induction t as [| t IH]; [exact Ph |].
  pose proof (along_product I _ _ s _ _ _ _ (Px t) PWx) as [E1 D1].
  pose proof (along_product H _ _ s _ _ _ _ IH PWh) as [E2 D2].
  assert (Pa : path2 (fun s => summed (px s t) (states (px s) (pWx s) (pWh s) (ph s) t)
                                      (pWx s) (pWh s)) s (a t) (va (vh t) t)).
  { split.
    - destruct IH as [-> _], PWx as [-> _], PWh as [-> _]. rewrite Ex. reflexivity.
    - intros n j. unfold summed. eapply d_eq; [apply d_plus; [apply D1 | apply D2] |].
      unfold va, source. ring. }
  destruct (J_is t _ s _ Pa) as [E D]. destruct Pa as [Ea _]. split.
  - cbn [states]. unfold step. rewrite Ea. reflexivity.
  - intros n j. cbn [states vh]. unfold step, scaled.
    apply (d_comp f (fun s => γ j * norm _ n j + β j)); cbv beta; rewrite ?Ea.
    + apply f'_is.
    + eapply d_eq; [apply d_plus; [apply d_scal, D | apply d_const] | ring].
Qed.

Lemma one_step_back t : (t < T)%nat ->
  dot2 N H (vh (S t)) (dh (S t)) =
  dot2 N H (source t) (da t) + dot2 N H (vh t) (dh t) - dot2 N H (vh t) (e t).
Proof.
  intros I'. transitivity (dot2 N H (va (vh t) t) (da t)).
  - rewrite (da_is t I'), <- Jt_is. cbn [vh]. apply Sum_ext; intros n; apply Sum_ext; intros j.
    rewrite (dz_is t I'). ring.
  - transitivity (dot2 N H (source t) (da t) + dot2 N H (product H (vh t) Wh) (da t)).
    + unfold dot2. rewrite <- Sum_plus. apply Sum_ext; intros n. rewrite <- Sum_plus.
      apply Sum_ext; intros j. unfold va. ring.
    + rewrite product_by_x. unfold Rminus. rewrite Rplus_assoc. f_equal.
      apply Rplus_eq_reg_r with (dot2 N H (vh t) (e t)).
      transitivity (dot2 N H (vh t) (dh t)); [| ring].
      unfold dot2. rewrite <- Sum_plus. apply Sum_ext; intros n. rewrite <- Sum_plus.
      apply Sum_ext; intros k. rewrite (dh_is t I'). ring.
Qed.

Lemma backwards : is_derive (fun s => L (states (px s) (pWx s) (pWh s) (ph s))) s
  (dot2 N H v0 (dh 0%nat) + ∑ t < T, dot2 N H (source t) (da t)).
Proof.
  eapply d_eq; [apply (dL _ s vh) |].
  - split.
    + apply functional_extensionality; intros t. apply along_states.
    + intros t n j. apply along_states.
  - cbn [Sum]. change (∑ t < T, dot2 N H (vh t) (e t) + dot2 N H (vh T) (e T) =
      dot2 N H v0 (dh 0%nat) + ∑ t < T, dot2 N H (source t) (da t)).
    pose proof (Sum_telescope T (fun t => dot2 N H (vh t) (dh t))) as Te. cbv beta in Te.
    rewrite (Sum_ext_lt T (fun t => dot2 N H (vh (S t)) (dh (S t)) - dot2 N H (vh t) (dh t))
      (fun t => dot2 N H (source t) (da t) - dot2 N H (vh t) (e t))) in Te.
    + rewrite Sum_minus in Te. rewrite dh_last in Te. cbn [vh] in Te. lra.
    + intros t I'. rewrite (one_step_back t I'). ring.
Qed.
End Moving.

Lemma source_0 t n j :
  source (fun _ _ _ => 0) (fun _ _ => 0) (fun _ _ => 0) t n j = 0.
Proof. unfold source. rewrite product_0_l, !product_0_r. ring. Qed.

(* RNN.6: dh[t] = e[t] + da[t]·Whᵀ, and dh[T] = e[T]: dh[0] is the gradient by the first state;
   and dh[t] by the t-th, which is the first of the steps that follow. *)
Theorem RNN_6 : gradient2 N H (fun h0 => L (states x Wx Wh h0)) h0 (dh 0%nat).
Proof.
  intros p s d P. eapply d_eq.
  - apply (backwards (fun _ => x) (fun _ => Wx) (fun _ => Wh) p s (fun _ _ _ => 0) (fun _ _ => 0)
      (fun _ _ => 0) d); auto using path2_const.
  - rewrite (Sum_ext T _ (fun _ => 0)), Sum_0; [apply Rplus_0_r |].
    intros t. rewrite (dot2_ext _ _ _ _ (fun _ _ => 0)) by apply source_0.
    unfold dot2. rewrite (Sum_ext N _ (fun _ => 0)), Sum_0; [reflexivity |].
    intros n. rewrite (Sum_ext H _ (fun _ => 0)), Sum_0 by termwise. reflexivity.
Qed.

Lemma dot2_0 A : dot2 N H (fun _ _ => 0) A = 0.
Proof.
  unfold dot2. rewrite (Sum_ext N _ (fun _ => 0)), Sum_0; [reflexivity |].
  intros n. rewrite (Sum_ext H _ (fun _ => 0)), Sum_0 by termwise. reflexivity.
Qed.

(* RNN.7: dWh = h[0]ᵀ·da[0] + h[1]ᵀ·da[1] + … + h[T−1]ᵀ·da[T−1] *)
Theorem RNN_7 : gradient2 H H (fun Wh => L (states x Wx Wh h0)) Wh
  (fun k j => ∑ t < T, ∑ n < N, h t n k * da t n j).
Proof.
  intros p s d P. eapply d_eq.
  - apply (backwards (fun _ => x) (fun _ => Wx) p (fun _ => h0) s (fun _ _ _ => 0) (fun _ _ => 0)
      d (fun _ _ => 0)); auto using path2_const.
  - rewrite dot2_0, Rplus_0_l. transitivity (∑ t < T, ∑ k < H, ∑ j < H,
      d k j * ∑ n < N, h t n k * da t n j).
    + apply Sum_ext; intros t. etransitivity; [| apply (product_by_W N H H (h t) d (da t))].
      apply dot2_ext; intros. unfold source. rewrite product_0_l, product_0_r. ring.
    + rewrite Sum_swap. apply Sum_ext; intros k. rewrite Sum_swap. apply Sum_ext; intros j.
      apply Sum_scal.
Qed.

(* RNN.8: dWx = x[0]ᵀ·da[0] + x[1]ᵀ·da[1] + … + x[T−1]ᵀ·da[T−1] *)
Theorem RNN_8 : gradient2 I H (fun Wx => L (states x Wx Wh h0)) Wx
  (fun i j => ∑ t < T, ∑ n < N, x t n i * da t n j).
Proof.
  intros p s d P. eapply d_eq.
  - apply (backwards (fun _ => x) p (fun _ => Wh) (fun _ => h0) s (fun _ _ _ => 0) d
      (fun _ _ => 0) (fun _ _ => 0)); auto using path2_const.
  - rewrite dot2_0, Rplus_0_l. transitivity (∑ t < T, ∑ i < I, ∑ j < H,
      d i j * ∑ n < N, x t n i * da t n j).
    + apply Sum_ext; intros t. etransitivity; [| apply (product_by_W N I H (x t) d (da t))].
      apply dot2_ext; intros. unfold source. rewrite product_0_l, product_0_r. ring.
    + rewrite Sum_swap. apply Sum_ext; intros i. rewrite Sum_swap. apply Sum_ext; intros j.
      apply Sum_scal.
Qed.

(* RNN.9: dx[t] = da[t]·Wxᵀ *)
Theorem RNN_9 : gradient3 T N I (fun x => L (states x Wx Wh h0)) x
  (fun t n i => ∑ j < H, da t n j * Wx i j).
Proof.
  intros p s d [E D]. eapply d_eq.
  - apply (backwards p (fun _ => Wx) (fun _ => Wh) (fun _ => h0) s d (fun _ _ => 0)
      (fun _ _ => 0) (fun _ _ => 0)); auto using path2_const.
    intros t. split; [rewrite E; reflexivity | apply D].
  - rewrite dot2_0, Rplus_0_l. apply Sum_ext; intros t.
    etransitivity; [| apply (product_by_x N I H (d t) Wx (da t))].
    apply dot2_ext; intros. unfold source. rewrite !product_0_r. ring.
Qed.
End Through_time.

(* ---- A step, and the norms that it can have ---------------------------------------------- *)

(* RNN.4: dz[t] = dh[t+1]·f′(z[t]) *)
Theorem RNN_4 N H L (f f' : R -> R) (z dh : matrix) :
  (forall n j, is_derive f (z n j) (f' (z n j))) ->
  gradient2 N H L (fun n j => f (z n j)) dh ->
  gradient2 N H (fun z => L (fun n j => f (z n j))) z (fun n j => dh n j * f' (z n j)).
Proof.
  intros F dL p s d [E D]. eapply d_eq; [apply (dL _ s (fun n j => f' (z n j) * d n j)) |].
  - split; [rewrite E; reflexivity |]. intros n j.
    apply (d_comp f (fun s => p s n j)); [rewrite E; apply F | apply D].
  - apply Sum_ext; intros n; apply Sum_ext; termwise.
Qed.

(* RNN.5: da[t] = r·(g − ⟨g⟩ − x̂·⟨g·x̂⟩), or g·r if frozen, or dz[t]. The first is what layer norm
   does with every row n: it takes paths to paths, and this is the adjoint of its derivative. *)
Theorem RNN_5 N H ε (a : matrix) : (0 < H)%nat -> (forall n, 0 < var H (a n) + ε) ->
  let r n := rstd H ε (a n) in
  let xh n := normalized H ε (a n) in
  let J d n j := r n * (d n j - mean H (d n) - xh n j * mean H (xh n · d n)) in
  let Jt g n j := r n * (g n j - mean H (g n) - xh n j * mean H (g n · xh n)) in
  (forall p s d, path2 p s a d ->
     path2 (fun s n => normalized H ε (p s n)) s (fun n => normalized H ε (a n)) (J d)) /\
  (forall d g, dot2 N H (J d) g = dot2 N H d (Jt g)).
Proof.
  intros P root r xh J Jt. split.
  - intros p s d [E D]. split; [rewrite E; reflexivity |]. intros n j.
    assert (Pn : path (fun s => p s n) s (a n) (d n))
      by (split; [rewrite E; reflexivity | apply D]).
    apply (along_normalized H (a n) (d n) _ s P Pn ε (root n)).
  - intros d g. apply Sum_ext; intros n.
    pose proof (centred_adjoint H (r n) 1 (xh n) (g n) (d n)) as A.
    etransitivity; [| etransitivity; [exact A |]]; apply Sum_ext; intros; unfold J, Jt; ring.
Qed.

(* The other two forms: frozen statistics, and no norm (then m is 0 and r is 1). *)
Theorem RNN_5_frozen N H (m r : nat -> R) :
  (forall p s a d, path2 p s a d -> path2 (fun s n j => (p s n j - m j) * r j) s
     (fun n j => (a n j - m j) * r j) (fun n j => d n j * r j)) /\
  (forall d g, dot2 N H (fun n j => d n j * r j) g = dot2 N H d (fun n j => g n j * r j)).
Proof.
  split.
  - intros p s a d [E D]. split; [rewrite E; reflexivity |]. intros n j.
    eapply d_eq; [rate | ring].
  - intros d g. apply Sum_ext; intros n; apply Sum_ext; termwise.
Qed.

(* ---- The product of T Jacobians ---------------------------------------------------------- *)

Section Jacobian.
Variables (H : nat) (ε : R) (γ β c : nat -> R) (Wh : matrix) (f f' : R -> R).
Hypothesis H_pos : (0 < H)%nat.

(* One sequence; c is the input's part of the summed inputs. *)
Definition row (h : nat -> R) (j : nat) : R := c j + ∑ k < H, h k * Wh k j.
Definition cell (h : nat -> R) (i : nat) : R := f (γ i * normalized H ε (row h) i + β i).

Section At.
Variable h : nat -> R.
Hypothesis root : 0 < var H (row h) + ε.
Notation r := (rstd H ε (row h)).
Notation "x̂" := (normalized H ε (row h)).
Notation z := (fun i => γ i * x̂ i + β i).
Hypothesis f'_is : forall i, is_derive f (z i) (f' (z i)).

(* RNN.10: ∂h[t+1]ᵢ/∂h[t]ₖ = J[t]ₖᵢ = ∑ⱼ Whₖⱼ·r·(δⱼᵢ − 1/H − x̂ⱼ·x̂ᵢ/H)·γᵢ·f′(zᵢ) *)
Definition jacobian (k i : nat) : R :=
  ∑ j < H, Wh k j * r * (δ j i - 1 / H - x̂ j * x̂ i / H) * γ i * f' (z i).

Theorem RNN_10 k i : (k < H)%nat -> (i < H)%nat -> partial (fun h => cell h i) h k
  (∑ j < H, Wh k j * r * (δ j i - 1 / H - x̂ j * x̂ i / H) * γ i * f' (z i)).
Proof.
  intros K I. destruct (path_nudge h k) as [E D].
  assert (P : path (fun s => row (nudge h k s)) 0 (row h) (Wh k)).
  { split; [rewrite E; reflexivity |]. intros j. unfold row.
    eapply d_eq; [apply d_plus; [apply d_const | apply d_Sum; intros l; apply d_mult;
      [apply D | apply d_const]] |].
    cbv beta. rewrite Rplus_0_l, <- (Sum_delta H k (fun l => Wh l j)) by exact K.
    apply Sum_ext; termwise. }
  pose proof (along_normalized H _ _ _ _ H_pos P ε root) as [En Dn].
  unfold partial, cell. eapply d_eq.
  - apply (d_comp f (fun s => γ i * normalized H ε (row (nudge h k s)) i + β i)).
    + rewrite E. apply f'_is.
    + apply d_plus; [apply d_scal, Dn | apply d_const].
  - cbv beta. rewrite ?E. pose proof (count_ne0 H H_pos).
    symmetry. transitivity ((r * γ i * f' (z i)) * ∑ j < H, δ i j * Wh k j
      + (- r * γ i * f' (z i) / H) * ∑ j < H, Wh k j
      + (- r * γ i * f' (z i) * x̂ i / H) * ∑ j < H, x̂ j * Wh k j).
    + apply Sum_lin3. intros j. rewrite (δ_sym j i). field. assumption.
    + rewrite Sum_delta by exact I.
      change (∑ j < H, Wh k j) with (Sum H (Wh k)). unfold mean. field. assumption.
Qed.

(* A step back, RNN.4 to RNN.6 with e = 0, is this matrix times dh. *)
Theorem RNN_10_back dh k : let g := fun j => dh j * f' (z j) * γ j in
  ∑ j < H, r * (g j - mean H g - x̂ j * mean H (g · x̂)) * Wh k j = ∑ i < H, jacobian k i * dh i.
Proof.
  intros g. pose proof (count_ne0 H H_pos).
  transitivity (∑ j < H, ∑ i < H,
    Wh k j * r * (δ j i - 1 / H - x̂ j * x̂ i / H) * γ i * f' (z i) * dh i).
  - apply Sum_ext_lt; intros j Jn. symmetry.
    transitivity ((Wh k j * r) * ∑ i < H, δ j i * g i + (- Wh k j * r / H) * ∑ i < H, g i
      + (- Wh k j * r * x̂ j / H) * ∑ i < H, g i * x̂ i).
    + apply Sum_lin3. intros i. unfold g. field. assumption.
    + rewrite Sum_delta by exact Jn. change (∑ i < H, g i) with (Sum H g).
      unfold mean. field. assumption.
  - rewrite Sum_swap. apply Sum_ext; intros i. unfold jacobian.
    rewrite (Rmult_comm _ (dh i)), <- Sum_scal. apply Sum_ext; termwise.
Qed.
End At.
End Jacobian.

(* RNN.11: dh[t] = J[t]·J[t+1]·…·J[T−1]·dh[T] *)
Fixpoint jacobians (H : nat) (J : nat -> matrix) (t n : nat) : matrix :=
  match n with
  | O => fun k i => δ k i
  | S m => fun k i => ∑ l < H, J t k l * jacobians H J (S t) m l i
  end.
Theorem RNN_11 H J (dh : nat -> nat -> R) T t n : (t + n = T)%nat ->
  (forall s k, (t <= s < T)%nat -> dh s k = ∑ i < H, J s k i * dh (S s) i) ->
  forall k, (k < H)%nat -> dh t k = ∑ i < H, jacobians H J t n k i * dh T i.
Proof.
  revert t. induction n; intros t E back k K.
  - simpl. rewrite Sum_delta by exact K. f_equal. lia.
  - rewrite back by lia. cbn [jacobians].
    transitivity (∑ l < H, ∑ i < H, J t k l * jacobians H J (S t) n l i * dh T i).
    + apply Sum_ext_lt; intros l Ll.
      rewrite (IHn (S t)) by (lia || (intros; apply back; lia) || exact Ll).
      rewrite <- Sum_scal. apply Sum_ext; termwise.
    + rewrite Sum_swap. apply Sum_ext; intros i. rewrite (Rmult_comm _ (dh T i)), <- Sum_scal.
      apply Sum_ext; termwise.
Qed.

(* RNN.12: E[|da·Whᵀ|²] = s²·|da|², for weights with E[Whₖⱼ·Whₖᵢ] = δⱼᵢ·s²/H. Of an expectation
   only its linearity is needed. *)
Theorem RNN_12 (Ω : Type) (E : (Ω -> R) -> R) H (W : Ω -> matrix) s da : (0 < H)%nat ->
  (forall n (X : nat -> Ω -> R), E (fun ω => ∑ i < n, X i ω) = ∑ i < n, E (X i)) ->
  (forall c X, E (fun ω => c * X ω) = c * E X) ->
  (forall k j i, E (fun ω => W ω k j * W ω k i) = δ j i * s ^ 2 / H) ->
  E (fun ω => ∑ k < H, (∑ j < H, da j * W ω k j) ^ 2) = s ^ 2 * ∑ j < H, da j ^ 2.
Proof.
  intros P sums scales cov. pose proof (count_ne0 H P) as H0.
  assert (sq : forall ω k, (∑ j < H, da j * W ω k j) ^ 2
    = ∑ j < H, ∑ i < H, (da j * da i) * (W ω k j * W ω k i)).
  { intros ω k. set (q := Sum H (fun j => da j * W ω k j)). transitivity (q * q); [ring |].
    unfold q at 2. rewrite <- Sum_scal. apply Sum_ext; intros j. rewrite Rmult_comm. unfold q.
    rewrite <- Sum_scal. apply Sum_ext; termwise. }
  rewrite sums. transitivity (∑ k < H, s ^ 2 / H * ∑ j < H, da j ^ 2).
  - apply Sum_ext; intros k.
    replace (fun ω => (∑ j < H, da j * W ω k j) ^ 2)
      with (fun ω => ∑ j < H, ∑ i < H, (da j * da i) * (W ω k j * W ω k i))
      by (apply functional_extensionality; intros; symmetry; apply sq).
    rewrite sums, <- Sum_scal. apply Sum_ext_lt; intros j Jn. rewrite sums.
    rewrite (Sum_ext H _ (fun i => (s ^ 2 / H * da j) * (δ j i * da i))).
    + rewrite Sum_scal, Sum_delta by exact Jn. ring.
    + intros i. rewrite scales, cov. field. exact H0.
  - rewrite Sum_const. field. exact H0.
Qed.

(* ---- What a gradient through a norm is orthogonal to ------------------------------------- *)

Section Orthogonal.
Variables (I H : nat) (ε : R) (Wx Wh : matrix).
Hypothesis H_pos : (0 < H)%nat.
Notation a x h := (fun j => ∑ i < I, x i * Wx i j + ∑ k < H, h k * Wh k j).
Notation dot_ga g x := (mean H (g · normalized H ε x)).

(* ∑ⱼ aⱼ·daⱼ = H·ε·r²·⟨g·x̂⟩, from LN.15 and LN.16 *)
Lemma along_row w g : 0 < var H w + ε ->
  ∑ j < H, w j * ln_dx H ε w g j = H * ε * rstd H ε w ^ 2 * dot_ga g w.
Proof.
  intros root. pose proof (rstd_pos H ε w root).
  transitivity (mean H w * (∑ j < H, ln_dx H ε w g j)
    + 1 / rstd H ε w * ∑ j < H, ln_dx H ε w g j * normalized H ε w j).
  - apply Sum_lin2. intros j. unfold normalized. field. lra.
  - rewrite LN_15, LN_16 by assumption. field. lra.
Qed.

(* RNN.14: ∑ₖ h[t]ₖ·(dh[t] − e[t])ₖ + ∑ᵢ x[t]ᵢ·dx[t]ᵢ = H·ε·r²·⟨g·x̂⟩ *)
Theorem RNN_14 x h g : let da := ln_dx H ε (a x h) g in 0 < var H (a x h) + ε ->
  ∑ k < H, h k * (∑ j < H, da j * Wh k j) + ∑ i < I, x i * (∑ j < H, da j * Wx i j) =
  H * ε * rstd H ε (a x h) ^ 2 * dot_ga g (a x h).
Proof.
  intros da root. rewrite <- (along_row (a x h) g root). fold da.
  assert (S : forall n (W : matrix) y, ∑ k < n, y k * (∑ j < H, da j * W k j)
    = ∑ j < H, (∑ k < n, y k * W k j) * da j).
  { intros n W y. transitivity (∑ k < n, ∑ j < H, y k * W k j * da j).
    - apply Sum_ext; intros k. rewrite <- Sum_scal. apply Sum_ext; termwise.
    - rewrite Sum_swap. apply Sum_ext; intros j. symmetry.
      rewrite (Rmult_comm _ (da j)), <- Sum_scal. apply Sum_ext; termwise. }
  rewrite !S, <- Sum_plus. apply Sum_ext; termwise.
Qed.

(* RNN.15: ∑ₖⱼ Whₖⱼ·dWhₖⱼ + ∑ᵢⱼ Wxᵢⱼ·dWxᵢⱼ = the sum of H·ε·r²·⟨g·x̂⟩ over all rows *)
Theorem RNN_15 Q (x h g : matrix) : let da q := ln_dx H ε (a (x q) (h q)) (g q) in
  (forall q, 0 < var H (a (x q) (h q)) + ε) ->
  ∑ k < H, ∑ j < H, Wh k j * (∑ q < Q, h q k * da q j)
  + ∑ i < I, ∑ j < H, Wx i j * (∑ q < Q, x q i * da q j) =
  ∑ q < Q, H * ε * rstd H ε (a (x q) (h q)) ^ 2 * dot_ga (g q) (a (x q) (h q)).
Proof.
  intros da root. fold (dot2 H H Wh (fun k j => ∑ q < Q, h q k * da q j)).
  fold (dot2 I H Wx (fun i j => ∑ q < Q, x q i * da q j)).
  rewrite <- !product_by_W. unfold dot2. rewrite <- Sum_plus. apply Sum_ext; intros q.
  rewrite <- (along_row _ (g q) (root q)), <- Sum_plus. apply Sum_ext; intros j.
  unfold product, da. ring.
Qed.
End Orthogonal.
